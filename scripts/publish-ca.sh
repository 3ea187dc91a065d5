#!/usr/bin/env bash
# Puts the cluster's CA where pods look for it, if nobody has yet: a pod with a token starts only once its namespace has it,
# and whoever publishes it everywhere, root-ca-certificate-publisher-operator, is such a pod.
#   publish-ca.sh [--ca-file FILE] [NAMESPACE...]    on the cluster of $KUBECONFIG; without a namespace in kube-system
# Without a file it is the CA by which $KUBECONFIG knows the apiserver. That is another one where something in between, such
# as a load balancer, ends the connection: then give the file.
set -euo pipefail

ca_file=
if [ "${1:-}" = --ca-file ]; then
  ca_file=${2:?names the file with the CA}
  shift 2
fi
[ $# != 0 ] || set -- kube-system

ca() {
  if [ -n "$ca_file" ]; then
    cat "$ca_file"
  else
    kubectl config view --raw --minify --flatten --output 'jsonpath={.clusters[0].cluster.certificate-authority-data}' |
      base64 --decode
  fi
}

for namespace in "$@"; do
  # One without a certificate in it helps no pod, and holds nobody up but this script.
  published=$(kubectl --namespace "$namespace" get configmap kube-root-ca.crt --ignore-not-found \
    --output 'jsonpath={.data.ca\.crt}')
  case $published in *'BEGIN CERTIFICATE'*) continue ;; esac
  certificates=$(ca)
  case $certificates in
  *'BEGIN CERTIFICATE'*) ;;
  *)
    echo "no certificate in ${ca_file:-the kubeconfig}: --ca-file names a file with the CA of the apiserver's certificate" >&2
    exit 1
    ;;
  esac
  kubectl create configmap kube-root-ca.crt --from-literal "ca.crt=$certificates" --dry-run=client --output yaml |
    kubectl --namespace "$namespace" apply --server-side --force-conflicts --field-manager publish-ca --filename -
done
