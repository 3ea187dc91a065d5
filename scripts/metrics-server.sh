# Sourced after node.sh and node-image.sh by who needs what pods take on the node: upstream's metrics-server.
# shellcheck shell=bash

metrics_server=operators.local/metrics-server:upstream

# Upstream's own manifests, with the image that is there.
add_metrics_server() {
  local module
  module=$(go list -C e2e/tools/metrics-server -m -f '{{.Dir}}' sigs.k8s.io/metrics-server)
  kubectl kustomize "$module/manifests/base" 2>/dev/null |
    sed "s|image: .*|image: $metrics_server|" | kubectl apply --filename - >/dev/null
  await_api v1beta1.metrics.k8s.io
  step "upstream's metrics-server answers for metrics.k8s.io"
}
