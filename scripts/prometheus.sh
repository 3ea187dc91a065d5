# Sourced after node.sh and node-image.sh by who needs what pods tell of themselves: Prometheus asks them, and upstream's
# prometheus-adapter serves what it knows as custom and external metrics.
# shellcheck shell=bash

prometheus=operators.local/prometheus:upstream
prometheus_adapter=operators.local/prometheus-adapter:upstream

monitoring() { kubectl --namespace monitoring "$@"; }

# It finds the pods of the namespace default, may read nothing else, and asks those with a port called metrics. A pod's label
# app names its Deployment.
add_prometheus() {
  kubectl create namespace monitoring >/dev/null
  monitoring create serviceaccount prometheus >/dev/null
  kubectl create role prometheus --verb list,watch --resource pods >/dev/null
  kubectl create rolebinding prometheus --role prometheus --serviceaccount monitoring:prometheus >/dev/null
  # Servers of plain files do not say which format their metrics have.
  monitoring create configmap prometheus --from-file prometheus.yml=/dev/stdin >/dev/null <<'YAML'
global: {scrape_interval: 5s}
scrape_configs:
  - job_name: pods
    fallback_scrape_protocol: PrometheusText0.0.4
    kubernetes_sd_configs: [{role: pod, namespaces: {names: [default]}}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics, action: keep}
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
      - {source_labels: [__meta_kubernetes_pod_label_app], target_label: deployment}
YAML
  monitoring create --filename - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: prometheus}
spec: {selector: {app.kubernetes.io/name: prometheus}, ports: [{port: 9090}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: prometheus}}
  template:
    metadata: {labels: {app.kubernetes.io/name: prometheus}}
    spec:
      serviceAccountName: prometheus
      containers:
        - name: prometheus
          image: $prometheus
          args: [--config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/data]
          readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
          volumeMounts: [{name: config, mountPath: /etc/prometheus}, {name: data, mountPath: /data}]
      volumes: [{name: config, configMap: {name: prometheus}}, {name: data, emptyDir: {}}]
YAML
  monitoring rollout status deployment/prometheus --timeout 120s >/dev/null
  step "Prometheus runs"
}

# knows METRIC: whether Prometheus has a value of it.
knows() {
  kubectl get --raw "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query?query=$1" |
    grep --quiet '"value"'
}

# add_prometheus_adapter OF_PODS FROM_OUTSIDE: two metrics. The one is served of each pod, and of its Deployment as the sum
# of all its pods; the other one as an external metric.
# Upstream's own manifests, with the image that is there and this Prometheus. Left out are those of the metrics that
# metrics-server serves here, and those without which it answers too.
add_prometheus_adapter() {
  local api module part
  # It looks for what there is when it starts, and then once a minute.
  within 60 knows "$1"
  within 60 knows "$2"
  monitoring create configmap adapter-config --from-file config.yaml=/dev/stdin >/dev/null <<YAML
rules:
  - seriesQuery: '$1{pod!=""}'
    resources:
      overrides: {namespace: {resource: namespace}, pod: {resource: pod}, deployment: {group: apps, resource: deployment}}
    metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
  - seriesQuery: '$2{namespace!=""}'
    resources: {overrides: {namespace: {resource: namespace}}}
    metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
YAML
  module=$(go list -C e2e/tools/prometheus-adapter -m -f '{{.Dir}}' sigs.k8s.io/prometheus-adapter)
  for part in service-account cluster-role cluster-role-binding cluster-role-binding-delegator \
    role-binding-auth-reader service deployment; do
    echo ---
    cat "$module/deploy/manifests/$part.yaml"
  done | sed "
    s|image: .*|image: $prometheus_adapter|
    s|--prometheus-url=.*|--prometheus-url=http://prometheus.monitoring.svc:9090|" | kubectl apply --filename - >/dev/null
  for api in custom external; do
    kubectl create --filename - >/dev/null <<YAML
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.$api.metrics.k8s.io}
spec:
  group: $api.metrics.k8s.io
  version: v1beta1
  service: {namespace: monitoring, name: prometheus-adapter}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
YAML
    await_api "v1beta1.$api.metrics.k8s.io"
  done
  step "upstream's prometheus-adapter answers for custom.metrics.k8s.io and external.metrics.k8s.io"
}
