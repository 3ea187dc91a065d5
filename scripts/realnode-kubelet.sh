#!/usr/bin/env bash
# A kubelet that is killed and comes back, on a real node: the node is lost, pods have to leave it, and those that may stay
# run on as they were.
#   REALNODE=path/to/realnode realnode-kubelet.sh    as root, after the image that has all; node.sh says what $REALNODE is
# A second node that is an object only, and whose Lease this script renews, keeps node-lifecycle-operator from taking the
# silence of all nodes for an outage.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh

ONE_IMAGE=1
spare=spare

leave() {
  [ -z "${heart:-}" ] || kill "$heart" || true
  finish "$1"
}

field() { kubectl get "$1" --ignore-not-found --output "jsonpath=$2"; }
ready() { [ "$(field "node/$node" '{.status.conditions[?(@.type=="Ready")].status}')" = "$1" ]; }
taints() { field "node/$node" '{range .spec.taints[*]}{.key}:{.effect} {end}'; }
is_tainted() { case "$(taints)" in *"node.kubernetes.io/unreachable:NoExecute"*) ;; *) return 1 ;; esac; }
is_untainted() { [ -z "$(taints)" ]; }
pod_ready() { [ "$(field "pod/$1" '{.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
is_going() { [ -n "$(field "pod/$1" '{.metadata.deletionTimestamp}')" ]; }
has_account() { kubectl get serviceaccount default >/dev/null 2>&1; }
is_gone() { [ -z "$(kubectl get pod "$1" --ignore-not-found --output name)" ]; }

add_spare() {
  kubectl create --filename - >/dev/null <<YAML
apiVersion: v1
kind: Node
metadata:
  name: $spare
  labels: {topology.kubernetes.io/zone: spare}
spec:
  taints: [{key: example.com/not-real, effect: NoSchedule}]
YAML
  kubectl patch node "$spare" --subresource status --type merge --patch \
    '{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Spare", "message": "", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}' >/dev/null
}
beat() {
  while true; do
    kubectl apply --server-side --force-conflicts --filename - >/dev/null 2>&1 <<YAML || true
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: $spare, namespace: kube-node-lease}
spec: {holderIdentity: $spare, renewTime: "$(date --utc +%Y-%m-%dT%H:%M:%S.000000Z)"}
YAML
    sleep 5
  done
}

# add_pod NAME SECONDS: one that tolerates for so long that its node is lost; for ever if it is empty.
add_pod() {
  kubectl create --filename - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  tolerations:
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute${2:+, tolerationSeconds: $2}}
  containers: [{name: nginx, image: "nginx:1.7.9"}]
YAML
  kubectl wait --for condition=Ready "pod/$1" --timeout 60s >/dev/null
}

start node-lifecycle-operator taint-eviction-operator pod-garbage-collector-operator
node=$(kubectl get nodes --output 'jsonpath={.items[0].metadata.name}')
add_spare
beat &
heart=$!
trap 'leave $?' EXIT
within 30 has_account
add_pod leaves 5
add_pod stays ''
within 30 is_untainted
step "two pods run on $node, which has no taints"
before=$(field pod/stays '{.metadata.uid} {.status.containerStatuses[0].containerID}')

end_kubelet
since=$SECONDS
step "the kubelet was killed"
within 90 ready Unknown
step "the node is Unknown after $((SECONDS - since)) s"
within 30 is_tainted
step "and ends pods after $((SECONDS - since)) s"
within 30 is_going leaves
step "one pod is evicted after $((SECONDS - since)) s"
within 30 pod_ready stays False
[ "$(field pod/leaves '{.status.conditions[?(@.type=="DisruptionTarget")].reason}')" = DeletionByTaintManager ] || fail "no reason"
! is_going stays || fail "it may stay for ever"
step "the other one is not ready, and stays"

begin_kubelet
since=$SECONDS
within 60 ready True
within 30 is_untainted
within 60 pod_ready stays True
step "the kubelet is back: the node is ready and untainted, the pod that stayed is ready after $((SECONDS - since)) s"
within 60 is_gone leaves
[ "$(field pod/stays '{.metadata.uid} {.status.containerStatuses[0].containerID}')" = "$before" ] || fail "another pod or container"
step "the evicted pod is gone, and the container of the other one ran on"
