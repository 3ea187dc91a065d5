#!/usr/bin/env bash
# Starts the operators of manifests/ on a cluster where nobody rolls out Deployments or ReplicaSets: a new one without
# those controllers in kube-controller-manager, or one whose deployment- or replicaset-operator has lost all its pods.
# The operators are Deployments themselves, so the two get a pod each by hand, made from their Deployment's own template.
# These pods take the Leases, roll everything out, and release the Leases when they go: no two ever work at once.
#   bootstrap.sh    on the cluster of $KUBECONFIG, after kubectl apply -k manifests
set -euo pipefail

kubectl() { command kubectl --namespace kube-system "$@"; }

operators=$(kubectl get deployments --selector app.kubernetes.io/part-of=kubernetes-operators --output name)
if [ -z "$operators" ]; then
  echo "no operator is installed: kubectl apply -k manifests" >&2
  exit 1
fi
"$(dirname "$0")"/publish-ca.sh

by_hand=()
for operator in deployment-operator replicaset-operator; do
  available=$(kubectl get deployment "$operator" --ignore-not-found --output 'jsonpath={.metadata.name}/{.status.availableReplicas}')
  case $available in
  "$operator/" | "$operator/0") ;;
  *) continue ;;
  esac
  pod=$operator-bootstrap
  labels=$(kubectl get deployment "$operator" --output 'jsonpath={.spec.template.metadata.labels}')
  spec=$(kubectl get deployment "$operator" --output 'jsonpath={.spec.template.spec}')
  kubectl delete pod "$pod" --ignore-not-found
  printf '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "labels": %s}, "spec": %s}' \
    "$pod" "$labels" "$spec" |
    kubectl create --filename -
  by_hand+=("$pod")
done

for operator in $operators; do
  kubectl rollout status "$operator" --timeout 120s
done
if [ ${#by_hand[@]} != 0 ]; then
  kubectl delete pods "${by_hand[@]}"
fi
