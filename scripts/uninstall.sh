#!/usr/bin/env bash
# Takes operators away with all that was installed of them, so that kube-controller-manager can have their work again.
#   uninstall.sh OPERATOR...    these, on the cluster of $KUBECONFIG; a process of several controllers has the name of its
#                               account: one-process-operator, batch-group-operator
#   uninstall.sh --all          all of them, with the roles and accounts for who looks at them
#   --timeout SECONDS           how long their pods may take to end (180)
# `kubectl delete -k` takes accounts and roles first: the pods then crash again and again, and where the collector or one of
# those that keep pods is among them nobody takes the pods away. So here what starts pods goes first, then the pods, by hand
# and not by any controller, and once the last has ended, and released its Lease, everything else. What belongs to an
# operator is found by its labels: the manifests of its version are not needed. Shadows of an operator go with it.
# What operators have done stays: objects, their status, and kube-root-ca.crt, without which no pod would start.
set -euo pipefail
manifests=$(dirname "$0")/../manifests

usage() {
  sed -n '2,/^set /{/^set /!p}' "$0" >&2
  exit 2
}

timeout=180 all='' operators=()
while [ $# != 0 ]; do
  case $1 in
  --all) all=1 ;;
  --timeout) timeout=${2:?is a number of seconds} && shift ;;
  -*) usage ;;
  *) operators+=("$1") ;;
  esac
  shift
done
processes=(one-process-operator)
for folder in "$manifests"/groups/*/; do processes+=("$(basename "$folder")-group-operator"); done
singles=()
for folder in "$manifests"/*-operator; do singles+=("$(basename "$folder")"); done
has() { case " $1 " in *" $2 "*) true ;; *) false ;; esac; }

if [ -n "$all" ]; then
  [ ${#operators[@]} = 0 ] || usage
  operators=("${singles[@]}" "${processes[@]}")
else
  [ ${#operators[@]} != 0 ] || usage
  for operator in "${operators[@]}"; do
    has "${singles[*]} ${processes[*]}" "$operator" || { echo "there is no operator $operator" >&2 && exit 1; }
  done
fi

# The operators as whose accounts a process acts: its Role lists them.
accounts_of() {
  kubectl --namespace kube-system get role "${1}-token" --ignore-not-found --output 'jsonpath={.rules[*].resourceNames[*]}'
}
# What the processes that stay need.
needed=''
for process in "${processes[@]}"; do
  has "${operators[*]}" "$process" || needed+=" $(accounts_of "$process")"
done
# A process takes the accounts of its controllers along, except those that have pods.
with_pods=$(kubectl --namespace kube-system get deployments,daemonsets \
  --output 'jsonpath={.items[*].metadata.labels.app\.kubernetes\.io/name}')
for process in "${processes[@]}"; do
  has "${operators[*]}" "$process" || continue
  for account in $(accounts_of "$process"); do
    has "$with_pods $needed ${operators[*]}" "$account" || operators+=("$account")
  done
done
selector_of() { (IFS=, && echo "app.kubernetes.io/name in ($*)"); }
selector=$(selector_of "${operators[@]}")

of_them() {
  local verb=$1
  shift
  kubectl "$verb" --namespace kube-system --selector "$selector" "$@"
}

# Whoever deletes in the foreground leaves these to a collector, which may be gone.
release() {
  local object
  for object in $(of_them get deployments,replicasets,daemonsets,pods --output name); do
    kubectl --namespace kube-system patch "$object" --type merge --patch '{"metadata":{"finalizers":null}}' || true
  done
}

# First what makes pods, from above, then the pods, which nobody replaces any more. Again and again: somebody may have made
# one of them a moment before.
take() {
  of_them delete deployments,daemonsets --wait=false
  of_them delete replicasets --wait=false
  of_them delete pods --wait=false
}
gone() { [ -z "$(of_them get deployments,daemonsets,replicasets,pods --output name)" ]; }
limit=$((SECONDS + timeout))
take
until gone; do
  take >/dev/null
  if [ -z "$(of_them get pods --output name)" ]; then release; fi
  if [ "$SECONDS" -ge "$limit" ]; then
    of_them get deployments,daemonsets,replicasets,pods --output wide >&2
    echo "still there after $timeout s, so their accounts and roles stay. A pod whose node is gone ends by" \
      "kubectl delete pod --force. Then run this again." >&2
    exit 1
  fi
  sleep 0.5
done

of_them delete poddisruptionbudgets,networkpolicies,services,controllerrevisions
# Copies that others make of a Service and of its labels.
of_them delete endpointslices,endpoints
leaving=()
for operator in "${operators[@]}"; do
  if has "$needed" "$operator"; then
    echo "the account and the roles of $operator stay, because a process of several controllers acts as it"
  else
    leaving+=("$operator")
  fi
done
if [ ${#leaving[@]} != 0 ]; then
  selector=$(selector_of "${leaving[@]}")
  kubectl delete serviceaccounts,rolebindings,roles --all-namespaces --selector "$selector"
  kubectl delete clusterrolebindings,clusterroles --selector "$selector"
  kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies --selector "$selector"
fi

# Last, because nobody can create them again now.
leases=()
for lease in $(kubectl --namespace kube-system get leases --output name); do
  if has "${leaving[*]}" "${lease##*/}"; then leases+=("$lease"); fi
done
[ ${#leases[@]} = 0 ] || kubectl --namespace kube-system delete --ignore-not-found "${leases[@]}"
if [ -n "$all" ]; then
  kubectl delete serviceaccounts,networkpolicies,rolebindings,roles,clusterrolebindings,clusterroles --all-namespaces \
    --selector app.kubernetes.io/part-of=kubernetes-operators
  kubectl --namespace kube-system delete configmaps --selector app.kubernetes.io/part-of=kubernetes-operators
  # Few clusters serve these kinds. If an aggregated API is down, kubectl fails after it has listed the others.
  served=$(kubectl api-resources --api-group monitoring.coreos.com --output name | tr '\n' ' ') || true
  for kind in prometheusrules.monitoring.coreos.com servicemonitors.monitoring.coreos.com; do
    if has "$served" "$kind"; then
      kubectl delete "$kind" --all-namespaces --selector app.kubernetes.io/part-of=kubernetes-operators
    fi
  done
fi

# kube-controller-manager never runs controllers of clouds, and two of the others only if they are named.
without_cloud=$(sed -n 's/^ *- //p' "$manifests/kustomization.yaml" | tr '\n' ' ')
remove=() add=()
for operator in "${leaving[@]}"; do
  has "$without_cloud" "$operator" || continue
  case $operator in
  bootstrap-signer-operator | token-cleaner-operator) add+=("${operator%-operator}-controller") ;;
  *) remove+=("-${operator%-operator}-controller") ;;
  esac
done
count=$((${#remove[@]} + ${#add[@]}))
if [ "$count" != 0 ]; then
  echo "nothing is left of $count operators. To give kube-controller-manager their work, change --controllers:"
  [ ${#remove[@]} = 0 ] || echo "remove $(IFS=, && echo "${remove[*]}")"
  [ ${#add[@]} = 0 ] || echo "add $(IFS=, && echo "${add[*]}")"
fi
