#!/usr/bin/env bash
# The operators as DaemonSets on a real node that has neither a CNI plugin nor kube-proxy, and a cluster that has no
# kube-controller-manager: they come up, the node gets its network and becomes ready, and a web server is rolled out.
#   REALNODE=path/to/realnode realnode-daemonset.sh OPERATOR...    as root, after make image OPERATOR=operators
# node.sh says what $REALNODE is. Besides that it has the folder of its kubeconfig for its files: NAME.pid of each part, and
# cni with the configuration of the network.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh

[ $# != 0 ] || fail "which operators?"

node_is() { [ "$(kubectl get nodes --output 'jsonpath={.items[0].status.conditions[?(@.type=="Ready")].status}')" = "$1" ]; }

up '*' "$@"
parts=$(dirname "$KUBECONFIG")
for part in kcm proxy; do
  kill "$(cat "$parts/$part.pid")"
done
kube-proxy --cleanup >/dev/null 2>&1 || "$parts/../bin/kube-proxy" --cleanup >/dev/null 2>&1 || true
mkdir "$parts/cni-later"
mv "$parts"/cni/* "$parts/cni-later/"
within 60 node_is False
kubectl label nodes --all node-role.kubernetes.io/control-plane= >/dev/null
step "the node has neither network nor kube-proxy, and the cluster no kube-controller-manager"

"$realnode" load dist/images/operators.tar >/dev/null
mkdir -p dist/daemonset
{
  echo 'resources:'
  printf -- '- ../../manifests/%s\n' "${operators[@]}"
  echo 'components: [../../manifests/components/one-image, ../../manifests/components/daemonset]'
} >dist/daemonset/kustomization.yaml
kubectl apply -k dist/daemonset >/dev/null
scripts/bootstrap.sh
node_is False || fail "the node became ready without a network"
for operator in "${operators[@]}"; do
  system rollout status "daemonset/$operator" --timeout 60s >/dev/null
done
listeners=$(ss -Hltn 'sport >= 10300 and sport < 10400' | awk '{ print $4 }')
[ "$(grep -c '^127\.0\.0\.1:' <<<"$listeners")" = ${#operators[@]} ] || fail "they listen at $listeners"
step "${#operators[@]} DaemonSets are at work, each at a port of its own of 127.0.0.1"

# Written, not moved: containerd takes no notice of a file that is only there all at once.
cp "$parts"/cni-later/* "$parts/cni/"
"$realnode" proxy
within 60 node_is True
kubectl create deployment web --image nginx:1.9.1 --replicas 2 >/dev/null
kubectl rollout status deployment/web --timeout 120s >/dev/null
step "the node has its network, and a Deployment its pods"

scripts/uninstall.sh "${operators[@]}" >/dev/null
[ -z "$(system get daemonsets,pods,controllerrevisions --output name)" ] || fail "something is left"
step "all seen"
