#!/usr/bin/env bash
# The operators' images and manifests on a real node: kubelet, containerd, scheduler, and a kube-controller-manager that
# leaves their controllers alone. Rolls out real web servers, takes leaders away, then all operators at once, drains the
# node, measures, and gives everything back to kube-controller-manager.
#   REALNODE=path/to/realnode realnode.sh OPERATOR...    as root, after make images; node.sh says what $REALNODE is
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh

web_runs() { [ "$(kubectl get pods --selector app=web --output 'jsonpath={.items[*].spec.containers[0].image}')" = "$*" ]; }
rolled_out() { kubectl rollout status deployment/web --timeout 120s >/dev/null; }

# The process of the pod: in a container of one process its hostname is the pod's name.
process_of() {
  local pid
  for pid in $(pgrep -x operator); do
    if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "HOSTNAME=$1"; then echo "$pid"; fi
  done
}

create_replication_controller() {
  kubectl create --filename - >/dev/null <<'YAML'
apiVersion: v1
kind: ReplicationController
metadata: {name: old-web}
spec:
  replicas: 2
  selector: {app: old-web}
  template:
    metadata: {labels: {app: old-web}}
    spec: {containers: [{name: nginx, image: "nginx:1.7.9"}]}
YAML
}

start "$@"

kubectl create deployment web --image nginx:1.7.9 --replicas 3 >/dev/null
rolled_out
for image in nginx:1.9.1 nginx:1.16.1; do
  kubectl set image deployment/web "nginx=$image" >/dev/null
  rolled_out
done
kubectl rollout undo deployment/web >/dev/null
rolled_out
within 60 web_runs nginx:1.9.1 nginx:1.9.1 nginx:1.9.1
step "a Deployment was created, rolled twice, and rolled back"

case " $* " in
*" replicationcontroller-operator "*)
  create_replication_controller
  kubectl wait --for 'jsonpath={.status.readyReplicas}=2' replicationcontroller/old-web --timeout 60s >/dev/null
  step "a ReplicationController has its pods"
  ;;
esac

for operator in "${operators[@]}"; do
  before=$(holder "$operator")
  since=$(date +%s%N)
  system delete pod "${before%%_*}" --wait=false >/dev/null
  within 30 held_by_another "$operator" "$before"
  step "$operator: the leader was deleted, another led after $((($(date +%s%N) - since) / 1000000)) ms"
  system rollout status "deployment/$operator" --timeout 60s >/dev/null
done
for operator in "${operators[@]}"; do
  before=$(holder "$operator")
  since=$(date +%s%N)
  kill -9 "$(process_of "${before%%_*}")"
  within 30 held_by_another "$operator" "$before"
  step "$operator: the leader was killed, another led after $((($(date +%s%N) - since) / 1000000)) ms"
done
kubectl scale deployment/web --replicas 5 >/dev/null
rolled_out
step "and Deployments are still kept"

# Nobody may do anything between the first that goes and the last.
for pod in $(system get pods --selector app.kubernetes.io/part-of=kubernetes-operators --output 'jsonpath={.items[*].metadata.name}'); do
  kill -STOP "$(process_of "$pod")"
done
system delete pods --selector app.kubernetes.io/part-of=kubernetes-operators --force --grace-period 0 >/dev/null 2>&1
since=$SECONDS
scripts/bootstrap.sh >/dev/null
for operator in "${operators[@]}"; do
  system rollout status "deployment/$operator" --timeout 60s >/dev/null
done
kubectl scale deployment/web --replicas 4 >/dev/null
rolled_out
step "all replicas of all operators were lost at once, and were back after $((SECONDS - since)) s"

node=$(kubectl get nodes --output 'jsonpath={.items[0].metadata.name}')
if kubectl drain "$node" --ignore-daemonsets --force --delete-emptydir-data --timeout 20s >/dev/null 2>&1; then
  fail "the only node was drained, so a PodDisruptionBudget let the last replica go"
fi
for operator in "${operators[@]}"; do
  available=$(system get deployment "$operator" --output 'jsonpath={.status.availableReplicas}')
  [ "${available:-0}" -ge 1 ] || fail "the drain left no replica of $operator"
done
kubectl uncordon "$node" >/dev/null
for operator in "${operators[@]}"; do
  system rollout status "deployment/$operator" --timeout 60s >/dev/null
done
rolled_out
step "a drain took all but the last replica of each, and all came back"

system create serviceaccount scraper >/dev/null
kubectl create clusterrolebinding scraper --clusterrole operators-metrics-reader --serviceaccount kube-system:scraper >/dev/null
token=$(system create token scraper)
for operator in "${operators[@]}"; do
  address=$(system get pods --selector "app.kubernetes.io/name=$operator" --output 'jsonpath={.items[0].status.podIP}')
  scrape() { curl --silent --insecure --output /dev/null --write-out '%{http_code}' "$@" "https://$address:10257/metrics"; }
  [ "$(scrape)" != 200 ] || fail "$operator shows its metrics to everybody"
  code=$(scrape --header "Authorization: Bearer $token")
  [ "$code" = 200 ] || fail "$operator answers a scraper with $code"
done
step "metrics are for whom the reader role is bound to"

printf '\n%-60s %10s %10s\n' pod 'RSS KiB' 'anon KiB'
for operator in "${operators[@]}"; do
  for pod in $(system get pods --selector "app.kubernetes.io/name=$operator" --output 'jsonpath={.items[*].metadata.name}'); do
    process=$(process_of "$pod")
    awk -v pod="$pod" '/^VmRSS/ { rss = $2 } /^RssAnon/ { anon = $2 } END { printf "%-60s %10d %10d\n", pod, rss, anon }' \
      "/proc/$process/status"
  done
done

scripts/uninstall.sh "${operators[@]}" >/dev/null
left=$(system get deployments,replicasets,pods,serviceaccounts,roles,leases --output name | grep -e -operator || true)
left+=$(kubectl get clusterroles,clusterrolebindings --output name | grep -e -operator || true)
[ -z "$left" ] || fail "still there: $left"
web_before=$(kubectl get pods --selector app=web --output 'jsonpath={.items[*].metadata.uid}')
"$realnode" kcm
kubectl scale deployment/web --replicas 5 >/dev/null
rolled_out
case "$(kubectl get pods --selector app=web --output 'jsonpath={.items[*].metadata.uid}')" in
*"${web_before%% *}"*) ;;
*) fail "pods were replaced when kube-controller-manager took over" ;;
esac
step "nothing is left of the operators, and kube-controller-manager does their work"
step "all seen"
