#!/usr/bin/env bash
# Brings up the operators of manifests/ where nobody starts their pods: on a new cluster without these controllers in
# kube-controller-manager, or when those that start pods have lost all of theirs.
# Operators are Deployments (or DaemonSets) themselves. So those that start such pods get one each by hand, made from their
# own template. These take the Leases, bring everything up, and release the Leases when they go: no two ever work at once.
#   bootstrap.sh [OPTION...]    on the cluster of $KUBECONFIG, after kubectl apply -k
#   --force                     replaces the pods of those that start pods even if they seem well: for a release that is
#                               ready and broken, after a better one was applied
#   --ca-namespaces A,B         where the CA is published if it is not yet (kube-system)
#   --ca-file FILE              that CA, if it is not the one by which $KUBECONFIG knows the apiserver
#   --timeout SECONDS           how long each step may take (180)
# What was there when the last operators died is what the status still says: nobody has updated it since. So an operator is
# taken for lost when none of its pods is ready, or when its Lease is not renewed for as long as it lasts; only times of the
# same clock are compared. Ready pods of a lost operator, such as on a node that is gone, are deleted, for else nobody would
# start others in their place.
# Left out: anything else that pods need to start, such as a network or nodes.
set -euo pipefail

force='' ca_file='' ca_namespaces=kube-system timeout=180
while [ $# != 0 ]; do
  case $1 in
  --force) force=1 ;;
  --ca-file) ca_file=${2:?names the file} && shift ;;
  --ca-namespaces) ca_namespaces=${2:?names namespaces} && shift ;;
  --timeout) timeout=${2:?is a number of seconds} && shift ;;
  *)
    sed -n '2,/^set /{/^set /!p}' "$0" >&2
    exit 2
    ;;
  esac
  shift
done

part_of=app.kubernetes.io/part-of=kubernetes-operators

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
system() { kubectl --namespace kube-system "$@"; }

# The objects of a kind, a line each: "operator|name|" and what the jsonpath gives. Shadows only watch, so they don't count.
rows() {
  system get "$1" --selector "$part_of" \
    --output "jsonpath={range .items[*]}{.metadata.labels.app\.kubernetes\.io/name}|{.metadata.name}|$2{\"\n\"}{end}" |
    grep -v -e --mode=shadow || true
}
workloads() {
  local kind
  for kind in deployment daemonset; do
    rows "$kind" "$kind|{.spec.template.spec.containers[0].args}"
  done
}
# The pods that are ready and stay, those by hand left out: "operator|name".
ready_pods() {
  rows pods '{.metadata.deletionTimestamp}|{.status.conditions[?(@.type=="Ready")].status}|{.spec.containers[0].args}' |
    awk -F '|' '$2 !~ /-bootstrap$/ && $3 == "" && $4 == "True" { print $1 "|" $2 }'
}
# The Leases: "operator holder time", with nothing for the holder of one that was released.
leases() {
  system get leases --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.holderIdentity} {.spec.renewTime}{"\n"}{end}'
}
# Longer than any Lease of an operator lasts.
longest_lease() {
  local name seconds longest=0
  while read -r name seconds; do
    if [[ " ${lease[*]} " == *" $name "* && $seconds -gt $longest ]]; then longest=$seconds; fi
  done < <(system get leases --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.leaseDurationSeconds}{"\n"}{end}')
  echo $((longest + 5))
}

# has LINES PREFIX: whether one of the lines begins so.
has() { case $'\n'$1 in *$'\n'"$2"*) true ;; *) false ;; esac; }
# Without an election there is no Lease, and Leases of other namespaces are not known here.
is_elected() { [[ ! ${args[$1]} =~ --leader-elect(=false|-resource-namespace) ]]; }
# moved OPERATOR LEASES LEASES: whether it was renewed from the one time to the other.
moved() {
  local line
  line=$(grep "^${lease[$1]} [^ ]" <<<"$3") && [ "$line" != "$(grep "^${lease[$1]} " <<<"$2")" ]
}

# within SECONDS COMMAND...: until the command succeeds.
within() {
  local limit=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$limit" ] || return 1
    sleep 0.5
  done
}

# By operator: what it runs as, its arguments, and the name of its Lease.
declare -A kind=() args=() lease=([one-process-operator]=kube-controller-manager)
while IFS='|' read -r operator name workload flags; do
  [ -n "$operator" ] || continue
  kind[$operator]=$workload/$name
  args[$operator]=$flags
  if [[ $flags =~ --leader-elect-resource-name=([^\"]+) ]]; then lease[$operator]=${BASH_REMATCH[1]}; fi
  lease[$operator]=${lease[$operator]:-$operator}
done <<<"$(workloads)"
if [ ${#kind[@]} = 0 ]; then
  echo "no operator is installed: kubectl apply -k manifests" >&2
  exit 1
fi
IFS=, read -r -a namespaces <<<"$ca_namespaces"
"$(dirname "$0")"/publish-ca.sh ${ca_file:+--ca-file "$ca_file"} "${namespaces[@]}"

# Those without which no pod of these is started. One that is not installed is somebody else's.
starters=()
case "${kind[*]}" in
*deployment/*) starters+=(deployment-operator replicaset-operator one-process-operator workloads-group-operator) ;;
esac
case "${kind[*]}" in *daemonset/*) starters+=(daemonset-operator) ;; esac

first=$(leases)
ready=$(ready_pods)
# Which of those with ready pods do not renew.
silent() {
  local operator now
  now=$(leases)
  lost=()
  for operator in "${!kind[@]}"; do
    if has "$ready" "$operator|" && is_elected "$operator" && ! moved "$operator" "$first" "$now"; then
      lost+=("$operator")
    fi
  done
  [ ${#lost[@]} = 0 ]
}
lost=()
within "$(longest_lease)" silent || say "ready, and yet not at work: ${lost[*]}"

by_hand=()
# However it ends, nothing that nobody keeps stays behind.
leave() {
  local status=$?
  if [ ${#by_hand[@]} != 0 ]; then
    system delete pods "${by_hand[@]}" --ignore-not-found --wait=false >/dev/null || true
  fi
  exit "$status"
}
trap leave EXIT
trap 'exit 130' INT TERM HUP

# The template of its pods. For a DaemonSet without what only one pod on a node can have, and without the label by which it
# would adopt this one: the image that has all operators is told the name by that label, so here it is in its place.
pod_by_hand() {
  local labels spec
  labels=$(system get "${kind[$1]}" --output 'jsonpath={.spec.template.metadata.labels}')
  spec=$(system get "${kind[$1]}" --output 'jsonpath={.spec.template.spec}')
  case ${kind[$1]} in daemonset/*) labels="{\"${part_of/=/\":\"}\"}" ;; esac
  printf '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "labels": %s}, "spec": %s}' \
    "$1-bootstrap" "$labels" "${spec//"\$(OPERATOR)"/$1}" |
    case ${kind[$1]} in
    daemonset/*)
      kubectl patch --local --filename - --type json --output json --patch '[
        {"op": "remove", "path": "/spec/containers/0/ports"},
        {"op": "remove", "path": "/spec/containers/0/livenessProbe"},
        {"op": "remove", "path": "/spec/containers/0/readinessProbe"},
        {"op": "add", "path": "/spec/containers/0/args/-", "value": "--secure-port=0"}]'
      ;;
    *) cat ;;
    esac
}
replaced=("${lost[@]}")
for operator in "${starters[@]}"; do
  [ -n "${kind[$operator]:-}" ] || continue
  if [ -n "$force" ] || [[ " ${lost[*]} " == *" $operator "* ]] || ! has "$ready" "$operator|"; then
    pod=$operator-bootstrap
    system delete pod "$pod" --ignore-not-found
    by_hand+=("$pod")
    pod_by_hand "$operator" | system create --filename -
    [ -z "$force" ] || replaced+=("$operator")
  fi
done

# explain: what keeps pods from being ready.
explain() {
  system get pods --selector "$part_of" --output wide >&2 || true
  system get events --field-selector type=Warning --sort-by .lastTimestamp 2>/dev/null | tail -n 15 >&2 || true
}
for pod in "${by_hand[@]}"; do
  if ! system wait --for condition=Ready "pod/$pod" --timeout "${timeout}s" >/dev/null; then
    explain
    echo "the pod $pod, made from the template of ${kind[${pod%-bootstrap}]}, is not ready" >&2
    exit 1
  fi
  say "$pod is ready"
done
for operator in "${replaced[@]}"; do
  # A pod on a node that is gone never ends, so nobody waits for it.
  while IFS='|' read -r _ pod; do
    system delete pod "$pod" --ignore-not-found --wait=false
  done < <(grep "^$operator|" <<<"$ready")
done

missing() {
  local operator now pods
  now=$(leases) pods=$(ready_pods)
  still=()
  for operator in "${!kind[@]}"; do
    if ! has "$pods" "$operator|" || { is_elected "$operator" && ! moved "$operator" "$first" "$now"; }; then
      still+=("$operator")
    fi
  done
  [ ${#still[@]} = 0 ]
}
still=()
if ! within "$timeout" missing; then
  explain
  echo "not at work after $timeout s: ${still[*]}" >&2
  exit 1
fi
if [ ${#by_hand[@]} != 0 ]; then
  system delete pods "${by_hand[@]}" --timeout "${timeout}s"
  by_hand=()
  first=$(leases)
  if ! within "$timeout" missing; then
    explain
    echo "without the pods by hand they are not at work: ${still[*]}" >&2
    exit 1
  fi
fi
say "all operators are at work"
