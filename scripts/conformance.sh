#!/usr/bin/env bash
# Upstream's own e2e tests of the controllers that the operators replace, as Kubernetes v1.36.3 has them, on the cluster of
# $KUBECONFIG: real nodes that have or pull the images of registry.k8s.io. Needs Go and kubectl.
#   conformance.sh [FOCUS]    a regular expression of test names; if not given, all of these controllers' tests
# Left out is what needs more than nodes (a private registry, a cloud's load balancer), and features that are off by
# default. The logs stay in dist/conformance.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${KUBECONFIG:?names the cluster}"
version=v1.36.3
program=${XDG_CACHE_HOME:-$HOME/.cache}/kubernetes-operators/$version/bin/e2e.test
logs=dist/conformance
others='private image|load-balancer|OffByDefault'

if ! [ -x "$program" ]; then
  echo "building $program (once; minutes)"
  mkdir -p "${program%/*}"
  flags="-s -w -X k8s.io/component-base/version.gitVersion=$version"
  flags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
  CGO_ENABLED=0 go test -C e2e/tools/kubernetes -c -vet=off -buildvcs=false -ldflags "$flags" -o "$program.partial" \
    k8s.io/kubernetes/test/e2e
  mv "$program.partial" "$program"
fi

# tests NAME FOCUS SKIP: all tests of that focus, one after the other.
tests() {
  "$program" --kubeconfig "$KUBECONFIG" --provider skeleton --ginkgo.no-color --ginkgo.v --ginkgo.timeout 60m \
    --ginkgo.focus "$2" --ginkgo.skip "$others|$3" >"$logs/$1.log" 2>&1
}

# Each test has a namespace of its own, but for those that upstream calls serial.
serial='\[Serial\]'
trap 'trap - INT TERM; kill 0' INT TERM
rm -rf "$logs"
mkdir -p "$logs"
if [ $# != 0 ]; then
  tests chosen "$1" nothing-else || true
else
  tests jobs '\[sig-apps\] Job ' "$serial" &
  tests cronjobs '\[sig-apps\] (CronJob|TTLAfterFinished) ' "$serial" &
  tests workloads '\[sig-apps\] (Deployment|ReplicaSet|ReplicationController) ' "$serial" &
  tests services '\[sig-network\] Services ' "$serial" &
  tests endpoints '\[sig-network\] EndpointSlice |\[sig-auth\] ServiceAccounts ' "$serial|token rotation" &
  # Waits twenty minutes for the kubelet's new token.
  tests tokens '\[sig-auth\] ServiceAccounts .*token rotation' nothing-else &
  tests garbage '\[sig-api-machinery\] Garbage collector ' "$serial" &
  wait
  tests serial "\[sig-apps\] Job .*$serial|Garbage collector .*$serial|\[sig-api-machinery\] Namespaces " nothing-else || true
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
