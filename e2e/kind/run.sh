#!/usr/bin/env bash
# Runs the e2e suite on a kind cluster of its own, where the operators run in pods from their images and manifests.
#   run.sh OPERATOR...    after make images; $KIND_IMAGE is kind's node image, if not its default
# The cluster is deleted in the end; the logs of a failed run stay in dist/kind.
set -euo pipefail
cd "$(dirname "$0")/../.."

for program in docker kind kubectl; do
  command -v "$program" >/dev/null || { echo "missing: $program" >&2; exit 1; }
done

cluster=operators-e2e
work=$(mktemp --directory)
export KUBECONFIG=$work/kubeconfig
finish() {
  status=$?
  if [ "$status" != 0 ]; then kind export logs --name "$cluster" dist/kind || true; fi
  kind delete cluster --name "$cluster" || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

# kubeadm's own value, less what the operators do. The nodes could not join without the two that it names, so these are
# taken out afterwards.
controllers='*,bootstrap-signer-controller,token-cleaner-controller'
later=()
for operator in "$@"; do
  # No pod has a network before its node has a CIDR, and as it is installed here, this operator gives none.
  [ "$operator" = node-ipam-operator ] && continue
  controller=${operator%-operator}-controller
  case $controllers in
    *",$controller"*) later+=("$controller") ;;
    *) controllers+=",-$controller" ;;
  esac
done
sed "s/CONTROLLERS/$controllers/" e2e/kind/cluster.yaml >"$work/cluster.yaml"
kind create cluster --name "$cluster" --config "$work/cluster.yaml" ${KIND_IMAGE:+--image "$KIND_IMAGE"}
manifest=/etc/kubernetes/manifests/kube-controller-manager.yaml
for controller in "${later[@]}"; do
  # The kubelet starts what it finds in that folder, so no other file may be in it, not even for a moment.
  docker exec "$cluster-control-plane" sh -c "sed 's/,$controller//' $manifest >/tmp/new && cat /tmp/new >$manifest"
done
# Not even the network's pods start without it, and no node is ready without them.
scripts/publish-ca.sh
kubectl wait --for condition=Ready nodes --all --timeout 180s

for operator in "$@"; do
  kind load image-archive --name "$cluster" "dist/images/$operator.tar"
  kubectl apply -k "manifests/$operator"
done
scripts/bootstrap.sh
# Without a Deployment controller not even this one was there: the operators rolled it out.
kubectl --namespace kube-system rollout status deployment/coredns --timeout 120s

# The faults need a cluster of their own making.
E2E_EXTERNAL=1 cargo test --locked --workspace --test suite -- --test-threads 2
