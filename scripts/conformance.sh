#!/usr/bin/env bash
# Upstream's own e2e tests of the controllers that the operators replace, as Kubernetes v1.36.3 has them, on the cluster of
# $KUBECONFIG: real nodes that have or pull the images of registry.k8s.io. Needs Rust, Go and kubectl.
#   conformance.sh [FOCUS...]    regular expressions of test names, each beside the others; if not given, all of these
#                                controllers' tests
#   SKIP=...                     of the chosen ones, those with names that match this
#   PROCESSES=8                  runs the tests of each focus in so many processes at a time
#   E2E_TEST=path/to/e2e.test    upstream's tests, built already; otherwise they are found or built
# Left out is what needs more than nodes (a private registry, a cloud's load balancer), and features that are off by
# default, unless $GATES says what is on in this cluster. The logs stay in dist/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${KUBECONFIG:?names the cluster}"
logs=dist/conformance
others='private image|load-balancer'
[ -n "${GATES:-}" ] || others+='|OffByDefault'

program=${E2E_TEST:-$(make --silent --no-print-directory upstream TOOL="e2e.test")}

[ -z "${PROCESSES:-}" ] || ginkgo=$(make --silent --no-print-directory upstream TOOL=ginkgo)

# tests NAME FOCUS SKIP: all tests of that focus, one after the other, or $PROCESSES at a time.
tests() {
  local cluster=(--kubeconfig "$KUBECONFIG" --provider skeleton)
  if [ -n "${PROCESSES:-}" ]; then
    "$ginkgo" --procs "$PROCESSES" --no-color -v --timeout 90m --focus "$2" --skip "$others|$3" "$program" -- "${cluster[@]}"
  else
    "$program" "${cluster[@]}" --ginkgo.no-color --ginkgo.v --ginkgo.timeout 90m --ginkgo.focus "$2" --ginkgo.skip "$others|$3"
  fi >"$logs/$1.log" 2>&1
}

# Each test has a namespace of its own, but for those that upstream calls serial.
serial='\[Serial\]'
trap 'trap - INT TERM; kill 0' INT TERM
rm -rf "$logs"
mkdir -p "$logs"
if [ $# != 0 ]; then
  chosen=0
  for focus in "$@"; do
    chosen=$((chosen + 1))
    tests "chosen-$chosen" "$focus" "${SKIP:-nothing-else}" &
  done
  wait
else
  tests jobs '\[sig-apps\] Job ' "$serial" &
  tests cronjobs '\[sig-apps\] (CronJob|TTLAfterFinished) ' "$serial" &
  tests workloads '\[sig-apps\] (Deployment|ReplicaSet|ReplicationController) ' "$serial" &
  tests sets '\[sig-apps\] (StatefulSet|DisruptionController) ' "$serial" &
  tests services '\[sig-network\] (Services|Service CIDRs|ServiceCIDR and IPAddress API) ' "$serial" &
  tests endpoints '\[sig-network\] Endpoint|\[sig-auth\] (ServiceAccounts|Certificates API) ' "$serial|token rotation" &
  tests quotas '\[sig-api-machinery\] ResourceQuota ' "$serial" &
  # Waits twenty minutes for the kubelet's new token.
  tests tokens '\[sig-auth\] ServiceAccounts .*token rotation' nothing-else &
  tests garbage '\[sig-api-machinery\] Garbage collector ' "$serial" &
  wait
  tests serial "\[sig-apps\] (Job|Daemon set|ControllerRevision|StatefulSet) .*$serial|Garbage collector .*$serial" nothing-else || true
  tests nodes "\[sig-node\] NoExecuteTaintManager .*$serial|\[sig-node\] Node Lifecycle |\[sig-api-machinery\] (Namespaces|ResourceQuota .*$serial)" nothing-else || true
fi

ended=0
for log in "$logs"/*.log; do
  grep --text --with-filename '^Ran ' "$log" || true
  if ! grep --text --with-filename '^SUCCESS!' "$log"; then
    ended=1
    awk '/^• \[(FAILED|PANICKED|TIMEDOUT|INTERRUPTED|ABORTED)/ { getline; print "failed: " $0 }' "$log"
    grep --text '^  \[FAILED\] ' "$log" | grep --invert-match '^  \[FAILED\] in ' || tail --lines 5 "$log"
  fi
done
exit "$ended"
