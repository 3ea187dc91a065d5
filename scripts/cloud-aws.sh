#!/usr/bin/env bash
# The operators of clouds with the AWS provider, unmodified, behind providers/go, and moto as AWS: nodes are initialized
# and get routes in the VPC's table, a Service gets a network load balancer and loses it, a stopped instance's node is
# tainted and a terminated one's deleted. moto carries no traffic.
#   cloud-aws.sh OPERATOR...    those that work with a cloud, after cargo build --package e2e --package cloud and theirs
# Needs Go, Python with venv, kubectl and jq. BIN (target/debug) has the operators, e2e and cloud-sanity.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-${CARGO_TARGET_DIR:-target}/debug}
: "${1:?is an operator that works with a cloud}"
operators=("$@")
port=${MOTO_PORT:-5000}
endpoint=http://127.0.0.1:$port
run=$(mktemp --directory)
# The provider panics on moto's answers about classic load balancers.
balancer_type=service.beta.kubernetes.io/aws-load-balancer-type

# shellcheck source=scripts/steps.sh
. scripts/steps.sh

started=()
begin() {
  local name=$1
  shift
  "$@" >"$run/$name.log" 2>&1 &
  started+=("$!")
}
leave() {
  local status=$? pid
  trap - EXIT INT TERM
  if [ "$status" != 0 ]; then tail -n 15 "$run"/*.log; fi
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$run"
  exit "$status"
}
trap leave EXIT
trap 'exit 1' INT TERM

for program in "${operators[@]}" e2e cloud-sanity; do
  [ -x "$bin/$program" ] || fail "there is no $bin/$program"
done

step "the AWS provider is built"
CGO_ENABLED=0 go build -C providers/go/aws -trimpath -ldflags=-s -o "$run/provider" .

step "moto starts"
python3 -m venv "$run/venv"
"$run/venv/bin/pip" install --quiet 'moto[server]==5.2.5' boto3
begin moto "$run/venv/bin/moto_server" --port "$port"
aws() { "$run/venv/bin/python" providers/go/aws/moto/cloud.py "$1" "$endpoint" "${@:2}"; }
within 60 curl --silent --output /dev/null "$endpoint"
vpc=$(aws set_up)
value() { jq --raw-output "$1" <<<"$vpc"; }
mapfile -t names < <(value '.instances[].name')
mapfile -t ids < <(value '.instances[].id')
sed -e "s/{vpc}/$(value .vpc)/; s/{subnet}/$(value .subnet)/; s/{table}/$(value .table)/" \
  -e "s|{endpoint}|$endpoint|" providers/go/aws/moto/cloud.conf >"$run/cloud.conf"

step "a cluster starts"
begin cluster "$bin/e2e" cluster --nodes 0
within 120 grep --quiet ^export "$run/cluster.log"
KUBECONFIG=$(sed -n 's/^export KUBECONFIG=//p' "$run/cluster.log")
export KUBECONFIG

step "the provider serves"
export AWS_EC2_METADATA_DISABLED=true AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=y AWS_REGION=us-east-1
begin provider "$run/provider" -socket "$run/cloud.sock" -cloud-config "$run/cloud.conf" -kubeconfig "$KUBECONFIG"
within 60 test -S "$run/cloud.sock"

# A node as a kubelet with --cloud-provider=external registers it, without a kubelet behind it. Its CIDR is inside that
# of the local cluster, because kube-controller-manager exits on any other. node-route-operator leaves the routes of
# cloud-sanity alone, because they are outside.
for number in 0 1; do
  kubectl create --filename - <<NODE
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "${names[number]}"}, "spec": {
  "podCIDR": "10.100.1$number.0/24", "podCIDRs": ["10.100.1$number.0/24"],
  "taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]}}
NODE
done

number=0
for operator in "${operators[@]}"; do
  flags=(--kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=$((20480 + number)) --bind-address=127.0.0.1
    --cloud-provider-endpoint="unix://$run/cloud.sock")
  case $operator in
    node-route-operator) flags+=(--cluster-name=lab --cluster-cidr=10.64.0.0/10) ;;
    service-lb-operator) flags+=(--cluster-name=lab) ;;
  esac
  begin "$operator" "$bin/$operator" "${flags[@]}"
  number=$((number + 1))
done

node() { kubectl get node "$1" --output json; }
initialized() {
  node "$1" | jq --exit-status --arg id "$2" '
    (.spec.providerID // "" | endswith($id)) and (.spec.taints // [] | all(.key | endswith("uninitialized") | not))
    and .metadata.labels["topology.kubernetes.io/zone"] == "us-east-1a"
    and .metadata.labels["node.kubernetes.io/instance-type"] == "m5.large"
    and (.status.addresses | any(.type == "InternalIP"))' >/dev/null
}
routed() {
  node "$1" | jq --exit-status '.status.conditions // [] | any(.type == "NetworkUnavailable" and .status == "False")' \
    >/dev/null
}
for number in 0 1; do
  within 60 initialized "${names[number]}" "${ids[number]}"
  within 60 routed "${names[number]}"
  [ "$(aws routes | jq --raw-output ".\"${ids[number]}\"")" = "10.100.1$number.0/24" ] || fail "there is no route"
done
step "both nodes are initialized and have their routes"

sanity=("$bin/cloud-sanity" --cloud-provider-endpoint="unix://$run/cloud.sock" --cluster-name=lab
  --concurrent-service-syncs=1
  --annotation="$balancer_type=nlb" --node="${names[0]}=$(node "${names[0]}" | jq --raw-output .spec.providerID)")
"${sanity[@]}" || fail "the provider breaks the contract"
step "the provider keeps the contract"

kubectl create --filename - <<SERVICE
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "annotations": {"$balancer_type": "nlb"}},
 "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}}
SERVICE
host() { kubectl get service web --output jsonpath='{.status.loadBalancer.ingress[0].hostname}'; }
balanced() { [ -n "$(host)" ] && aws balancers | jq --exit-status --arg host "$(host)" 'index($host)' >/dev/null; }
within 120 balanced
step "the Service has the load balancer $(host)"
kubectl delete service web --timeout 120s
[ "$(aws balancers)" = "[]" ] || fail "a load balancer is left"
step "and none is left after it"

aws stop "${ids[1]}" >/dev/null
tainted() { node "$1" | jq --exit-status '.spec.taints // [] | any(.key | endswith("/shutdown"))' >/dev/null; }
within 60 tainted "${names[1]}"
step "the node of a stopped instance is tainted"

aws terminate "${ids[0]}" >/dev/null
gone() { local found; found=$(kubectl get node "$1" --ignore-not-found --output name) && [ -z "$found" ]; }
within 120 gone "${names[0]}"
kubectl get node "${names[1]}" >/dev/null || fail "the node of an instance that exists is gone"
step "the node of a terminated instance is deleted"
