#!/usr/bin/env bash
# Puts the CA of $KUBECONFIG where pods of kube-system look for it, if nobody has yet: a pod with a token starts only once
# its namespace has it, and whoever publishes it everywhere, root-ca-certificate-publisher-operator, is such a pod.
set -euo pipefail

if [ -z "$(kubectl --namespace kube-system get configmap kube-root-ca.crt --ignore-not-found --output name)" ]; then
  kubectl config view --raw --minify --flatten --output 'jsonpath={.clusters[0].cluster.certificate-authority-data}' |
    base64 --decode |
    kubectl --namespace kube-system create configmap kube-root-ca.crt --from-file ca.crt=/dev/stdin
fi
