#!/usr/bin/env bash
# What each form of the controllers costs a real node: kube-controller-manager, one process, a process for each family, and a
# pod for each operator, one replica each, on a node without other pods.
#   REALNODE=path/to/realnode realnode-forms.sh    as root, after make image OPERATOR=operators; node.sh says what $REALNODE is
# The realnode's folder has bin/kube-controller-manager. Needs kubectl, buildah and jq.
# Prints a table in MiB. Memory of programs, pause containers and shims is in proportion (PSS): a page that several share is
# counted once. The last column is what the kubelet tells of the pods, without shims: their cgroups' working sets.
set -euo pipefail
cd "$(dirname "$0")/.."
home=${REALNODE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/realnode}

# shellcheck source=scripts/node.sh
. scripts/node.sh
# shellcheck source=scripts/node-image.sh
. scripts/node-image.sh
for program in kubectl buildah jq; do command -v "$program" >/dev/null || fail "missing: $program"; done
upstream=localhost:5000/kube-controller-manager:measured

load_upstream() (
  work=$(mktemp --directory)
  trap 'rm -rf "$work"' EXIT
  program_image "$upstream" "$home/bin/kube-controller-manager"
)

# pss PID...: kibibytes of memory in proportion, and how much of it is anonymous.
pss() {
  local pid
  for pid in "$@"; do cat "/proc/$pid/smaps_rollup"; done | awk '/^Pss:/ { all += $2 } /^Pss_Anon:/ { own += $2 } END { print all + 0, own + 0 }'
}

# measure FORM: a row of the table, once everything has been at rest for a minute.
measure() {
  local shims programs=() pauses=() shim child pods program pause all told
  sleep 60
  mapfile -t shims < <(pgrep --full containerd-shim-runc-v2)
  for shim in "${shims[@]}"; do
    for child in $(pgrep --parent "$shim"); do
      case $(tr '\0' ' ' <"/proc/$child/cmdline") in
      */pause* | pause*) pauses+=("$child") ;;
      *) programs+=("$child") ;;
      esac
    done
  done
  pods=$(system get pods --field-selector status.phase=Running --output name | wc --lines)
  read -r -a program <<<"$(pss "${programs[@]}")"
  read -r -a pause <<<"$(pss "${pauses[@]}")"
  read -r -a all <<<"$(pss "${shims[@]}")"
  told=$(kubectl get --raw /api/v1/nodes/node-real/proxy/stats/summary |
    jq '[.pods[] | select(.podRef.namespace == "kube-system") | .memory.workingSetBytes // 0] | add')
  rows+=("$(awk -v form="$1" -v pods="$pods" -v program="${program[0]}" -v own="${program[1]}" -v pause="${pause[0]}" \
    -v shim="${all[0]}" -v told="$told" 'BEGIN {
      printf "| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |", form, pods, program / 1024, own / 1024, pause / 1024,
        shim / 1024, (program + pause + shim) / 1024, told / 1048576 }')")
  step "${rows[-1]}"
}

# install FOLDER [COMPONENT]: with one replica each, and waits until all work.
install() {
  local form=dist/form
  mkdir -p "$form"
  printf 'resources: [../../manifests/%s]\ncomponents: [%s]\npatches:\n' "$1" "${2:-}" >"$form/kustomization.yaml"
  echo "  - {target: {kind: Deployment}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": 1}]'}" \
    >>"$form/kustomization.yaml"
  kubectl apply -k "$form" >/dev/null
  scripts/bootstrap.sh
}

rows=()
up '*'
"$realnode" load dist/images/operators.tar >/dev/null
load_upstream
end_controller_manager
run_static_pod "$upstream" /program
measure 'kube-controller-manager'
end_static_pod
kubectl apply -k manifests/one-process/accounts >/dev/null
run_static_pod "$(image_of_all)" /operator
measure 'one process'
end_static_pod
install groups
measure 'a process for each of six families'
scripts/uninstall.sh --all >/dev/null
install . ../../manifests/components/one-image
measure 'a pod for each operator'

echo '| form | pods | programs | of it anonymous | pause containers | shims | all | working set of the pods |'
echo '|---|---|---|---|---|---|---|---|'
printf '%s\n' "${rows[@]}"
