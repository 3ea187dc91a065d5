#!/usr/bin/env bash
# A day in the life of an installation, three times on a real node without kube-controller-manager: by the Helm chart, by
# kustomize, and by the one YAML file, each as a process for each family. Prints a table of how long each part took:
#   install     until all operators are at work, and a Deployment has its pods
#   upgrade     new pods of every operator, by another flag, while that Deployment rolls
#   kill        SIGKILL for every process, until all Leases are renewed and the Deployment has one pod more
#   recover     every pod is gone, and nobody starts others: scripts/bootstrap.sh
#   uninstall   nothing of the operators is left, and the Deployment's pods run on
#   REALNODE=path/to/realnode realnode-install.sh    as root, after make image OPERATOR=operators release-manifests
# node.sh says what $REALNODE is. Needs kubectl.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh

release=dist/release
helm=$(make --silent --no-print-directory upstream TOOL=helm)
chart=$(ls "$release"/kubernetes-operators-*.tgz)
overlay=dist/install
families=(batch identity network nodes storage workloads)
flag=--logging-format=json
patch='{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "'$flag'"}'

by_helm() {
  local values=()
  [ "$1" = old ] || values=(--set "extraArgs={$flag}")
  "$helm" upgrade --install operators "$chart" --namespace kube-system --set form=families "${values[@]}" >/dev/null
}
by_kustomize() {
  mkdir -p "$overlay"
  echo 'resources: [../../manifests/groups]' >"$overlay/kustomization.yaml"
  [ "$1" = old ] || echo "patches: [{target: {kind: Deployment}, patch: '[$patch]'}]" >>"$overlay/kustomization.yaml"
  kubectl apply -k "$overlay" >/dev/null
}
by_file() {
  local change=(cat)
  [ "$1" = old ] || change=(sed "s#^\( *\)- --use-service-account-credentials#&\n\1- $flag#")
  "${change[@]}" <"$release/families.yaml" | kubectl apply --filename - >/dev/null
}

# deploy TEMPLATE-ROUND REPLICAS: and until the Deployment is so.
deploy() {
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: $2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {round: "$1"}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "nginx:1.7.9", imagePullPolicy: Never}]
YAML
  within 120 is_deployed "$2"
}
is_deployed() {
  [ "$(kubectl get deployment web --output 'jsonpath={.metadata.generation} {.status.observedGeneration} {.status.replicas} {.status.updatedReplicas} {.status.availableReplicas}')" = \
    "$(kubectl get deployment web --output 'jsonpath={.metadata.generation} {.metadata.generation}') $1 $1 $1" ]
}
web_pods() { kubectl get pods --selector app=web --output 'jsonpath={.items[*].metadata.uid}'; }
rolled_out() {
  local family
  for family in "${families[@]}"; do
    system rollout status "deployment/$family-group-operator" --timeout 120s >/dev/null
  done
}
# Every Lease is held, and was renewed since a time.
renewed_since() {
  local family
  for family in "${families[@]}"; do
    [[ $(system get lease "$family-group-operator" --output 'jsonpath={.spec.renewTime}') > $1 ]] || return 1
    [ -n "$(holder "$family-group-operator")" ] || return 1
  done
}
now() { date --utc +%Y-%m-%dT%H:%M:%S; }
of_operators=app.kubernetes.io/part-of=kubernetes-operators
nothing_left() {
  [ -z "$(kubectl get all,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings --all-namespaces \
    --selector "$of_operators" --output name)" ]
}

# timed PART COMMAND...: and its time to the row.
timed() {
  local part=$1 begun=$SECONDS
  shift
  "$@"
  step "$way: $part took $((SECONDS - begun)) s"
  row+=" $((SECONDS - begun)) s |"
}
install() {
  "$way" old
  scripts/bootstrap.sh >/dev/null
  deploy 1 2
}
upgrade() {
  "$way" new
  deploy 2 2
  rolled_out
}
kill_everything() {
  local begun
  begun=$(now)
  pkill -9 --full '^/operator '
  within 120 renewed_since "$begun"
  deploy 2 3
}
recover() {
  # At once, so that none is left that would start another.
  system delete pods --selector "$of_operators" --grace-period 0 --force >/dev/null 2>&1
  pkill -9 --full '^/operator ' || true
  scripts/bootstrap.sh >/dev/null
  deploy 2 2
}
uninstall() {
  scripts/uninstall.sh --all >/dev/null
  [ "$way" != by_helm ] || "$helm" uninstall operators --namespace kube-system >/dev/null 2>&1
  nothing_left
}

rows=()
up '*'
end_controller_manager
"$realnode" load dist/images/operators.tar >/dev/null
for way in by_helm by_kustomize by_file; do
  row="| ${way#by_} |"
  timed install install
  timed upgrade upgrade
  timed kill kill_everything
  timed recover recover
  before=$(web_pods)
  timed uninstall uninstall
  [ "$(web_pods)" = "$before" ] || fail "pods of the Deployment went with the operators"
  rows+=("$row")
  # Nobody collects garbage now, and nothing may wait for that.
  kubectl delete deployment web >/dev/null
  kubectl delete replicasets,pods --selector app=web --grace-period 0 --force >/dev/null 2>&1
done
echo '| by | install | upgrade | kill everything | recover | uninstall |'
echo '|---|---|---|---|---|---|'
printf '%s\n' "${rows[@]}"
