# Sourced after node.sh and node-image.sh by who needs what pods take on the node: upstream's metrics-server.
# shellcheck shell=bash

metrics_server=operators.local/metrics-server:upstream

# metrics_server_image PROGRAM: of this program alone, so what else is in $work/files goes.
metrics_server_image() {
  rm -rf "${work:?}/files"
  mkdir "$work/files"
  cp "$1" "$work/files/metrics-server"
  image "$metrics_server" '["/metrics-server"]' '[]'
}

# Upstream's own manifests, with the image that is there.
add_metrics_server() {
  local module
  module=$(go list -C e2e/tools/metrics-server -m -f '{{.Dir}}' sigs.k8s.io/metrics-server)
  kubectl kustomize "$module/manifests/base" 2>/dev/null |
    sed "s|image: .*|image: $metrics_server|" | kubectl apply --filename - >/dev/null
  kubectl wait --for condition=Available apiservice/v1beta1.metrics.k8s.io --timeout 120s >/dev/null
  step "upstream's metrics-server answers for metrics.k8s.io"
}
