{{/* Whether the account of an operator is needed: (list . OPERATOR IS-DEFAULT FAMILY FAMILY-IS-DEFAULT IN-ONE-PROCESS). */}}
{{- define "kubernetes-operators.acts" -}}
{{- $values := (index . 0).Values -}}
{{- if eq $values.form "operators" -}}
  {{- include "kubernetes-operators.runs" (list (index . 0) (index . 1) (index . 2)) -}}
{{- else if eq $values.form "families" -}}
  {{- include "kubernetes-operators.runs-family" (list (index . 0) (index . 3) (index . 4)) -}}
{{- else if index . 5 -}}
  true
{{- end -}}
{{- end }}

{{/* Whether an operator has pods of its own: (list . OPERATOR IS-DEFAULT). */}}
{{- define "kubernetes-operators.runs" -}}
{{- $values := (index . 0).Values -}}
{{- if eq $values.form "operators" -}}
  {{- if ternary (has (index . 1) $values.operators) (index . 2) (gt (len $values.operators) 0) -}}
    true
  {{- end -}}
{{- end -}}
{{- end }}

{{/* Whether the process of a family runs: (list . FAMILY IS-DEFAULT); the family of an operator that is in none is empty. */}}
{{- define "kubernetes-operators.runs-family" -}}
{{- $values := (index . 0).Values -}}
{{- if and (eq $values.form "families") (index . 1) -}}
  {{- if ternary (has (index . 1) $values.families) (index . 2) (gt (len $values.families) 0) -}}
    true
  {{- end -}}
{{- end -}}
{{- end }}

{{/* The values of a pod as YAML, those of its name before those of all: (list . NAME). */}}
{{- define "kubernetes-operators.process" -}}
{{- $values := (index . 0).Values -}}
{{- $own := get $values.each (index . 1) | default dict -}}
{{- $process := pick $values "replicas" "resources" "nodeSelector" "affinity" "tolerations" "volumes" "volumeMounts" -}}
{{- range $name, $value := $own }}{{ $_ := set $process $name $value }}{{ end -}}
{{- $_ := set $process "extraArgs" (concat $values.extraArgs (get $own "extraArgs" | default list)) -}}
{{- toYaml $process -}}
{{- end }}

{{/* The reference of an image: (list . NAME). */}}
{{- define "kubernetes-operators.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- $image.registry }}/{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion -}}
{{- end }}
