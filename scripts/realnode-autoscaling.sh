#!/usr/bin/env bash
# horizontal-pod-autoscaler-operator on a real node, by what pods really take: upstream's metrics-server asks the kubelet, a
# pod burns CPU, and its Deployment grows, and shrinks again when the pod rests. First by the CPU of whole pods, and then by
# that of one container, where what the other one burns does not count. Then by what pods tell: Prometheus asks them, its
# adapter serves that as custom and external metrics, and a Deployment follows what is waiting.
#   REALNODE=path/to/realnode realnode-autoscaling.sh    as root, after the image that has all; node.sh says what $REALNODE is
# Needs Rust, Go, kubectl, buildah, and of Debian's packages: busybox-static.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh
# shellcheck source=scripts/node-image.sh
. scripts/node-image.sh
# shellcheck source=scripts/metrics-server.sh
. scripts/metrics-server.sh
# shellcheck source=scripts/prometheus.sh
. scripts/prometheus.sh

for program in cargo go kubectl buildah busybox; do
  command -v "$program" >/dev/null || fail "missing: $program"
done

ONE_IMAGE=1
most=3
shell=operators.local/shell:busybox

# In a shell of its own, which takes its files away however it ends. load_images METRICS_SERVER PROMETHEUS PROMETHEUS_ADAPTER
load_images() (
  work=$(mktemp --directory)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/files/bin" "$work/files/www"
  cp "$(command -v busybox)" "$work/files/bin/busybox"
  for applet in sh sleep touch rm mv httpd; do
    ln -s busybox "$work/files/bin/$applet"
  done
  # Burns as much as it gets while there is a file /burning.
  cat >"$work/files/burner" <<'SH'
while true; do
  if [ -e /burning ]; then
    left=20000
    while [ "$left" -gt 0 ]; do left=$((left - 1)); done
  else
    sleep 0.2
  fi
done
SH
  # teller METRIC: tells one metric at /metrics, which is zero until a step says otherwise.
  cat >"$work/files/teller" <<'SH'
echo "$1 0" >/www/metrics
exec httpd -f -p 8080 -h /www
SH
  image "$shell" '["sh"]' '["/burner"]'

  program_image "$metrics_server" "$1"
  program_image "$prometheus" "$2"
  program_image "$prometheus_adapter" "$3"
)

# deploy NAME CONTAINERS: one pod of these, at first.
deploy() {
  kubectl create --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec: {terminationGracePeriodSeconds: 0, containers: [$2]}
YAML
  kubectl rollout status "deployment/$1" --timeout 60s >/dev/null
}

add_burner() {
  local containers='' name
  for name in main beside; do
    containers+="{name: $name, image: \"$shell\", resources: {requests: {cpu: 100m}, limits: {cpu: 300m}}},"
  done
  deploy burner "$containers"
}

# teller METRIC: a container that tells it.
teller() { echo "{name: teller, image: \"$shell\", args: [/teller, $1], ports: [{name: metrics, containerPort: 8080}]}"; }

# Workers that each tell how many jobs wait for them, and a queue of orders, which is none of them.
add_tellers() {
  deploy worker "$(teller jobs_waiting)"
  kubectl create --filename - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: queue}
spec: {terminationGracePeriodSeconds: 0, containers: [$(teller orders_waiting)]}
YAML
  kubectl wait --for condition=Ready pod/queue --timeout 60s >/dev/null
}

# scale_by TYPE SOURCE: the Deployment $scaled by a metric, and down five seconds after that asks for less.
scale_by() {
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: $scaled}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: $scaled}
  minReplicas: 1
  maxReplicas: $most
  behavior: {scaleDown: {stabilizationWindowSeconds: 5}}
  metrics: [{type: $1, $2}]
YAML
  within 120 sees "$1"
  saw "an autoscaler has a metric of type $1"
}

autoscaler() { kubectl get horizontalpodautoscaler "$scaled" --output "jsonpath=$1"; }
measured() { kubectl get pods.v1beta1.metrics.k8s.io --selector app=burner --output "jsonpath=$1"; }

# What each container takes, in thousandths of a CPU.
usage() {
  measured '{range .items[*].containers[*]}{.name} {.usage.cpu}{"\n"}{end}' | awk '
    { value = $2 + 0 }
    $2 ~ /n$/ { value /= 1000000 }
    $2 ~ /u$/ { value /= 1000 }
    $2 !~ /[num]$/ { value *= 1000 }
    { printf "%s %dm\n", $1, value }'
}
saw() { step "$*: $(autoscaler '{.status.currentReplicas} of {.status.desiredReplicas} replicas by {.status.currentMetrics[0]}')"; }

sees() { [ "$(autoscaler '{.status.currentMetrics[0].type} {.status.conditions[?(@.type=="ScalingActive")].status}')" = "$1 True" ]; }
takes() { usage | awk -v name="$1" -v least="$2" '$1 == name && $2 + 0 >= least { found = 1 } END { exit !found }'; }
is_scaled() {
  local deployment
  deployment=$(kubectl get deployment "$scaled" --output 'jsonpath={.spec.replicas} {.status.replicas} {.status.readyReplicas}')
  [ "$(autoscaler '{.status.currentReplicas} {.status.desiredReplicas}') $deployment" = "$1 $1 $1 $1 $1" ]
}
# When what metrics-server says of the first pod was measured, in seconds since 1970.
measured_at() { date --date "$(measured '{.items[0].timestamp}')" +%s; }
is_measured_after() { [ "$(measured_at)" -gt "$1" ]; }

# The only pod, while there is one. Which of them stays is open whenever there were more.
first_pod() { kubectl get pods --selector "app=$scaled" --output 'jsonpath={.items[0].metadata.name}'; }

# burn CONTAINER, rest CONTAINER: of $pod.
burn() { kubectl exec "$pod" --container "$1" -- touch /burning; }
rest() { kubectl exec "$pod" --container "$1" -- rm /burning; }

# tell METRIC VALUE: by $pod, at once, so that nobody reads half of it.
tell() { kubectl exec "$pod" -- sh -c "echo '$1 $2' >/told && mv /told /www/metrics"; }

# grows COMMAND..., shrinks COMMAND...: what happens after it.
grows() {
  "$@"
  within 120 is_scaled "$most"
  saw "after '$*' it is scaled up"
}
shrinks() {
  "$@"
  within 240 is_scaled 1
  saw "after '$*' it is scaled down"
}

leave() {
  if [ "$1" != 0 ]; then
    kubectl describe horizontalpodautoscalers || true
    kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods || true
    kubectl get apiservices --output wide | grep metrics || true
    system logs --selector k8s-app=metrics-server --tail 20 || true
    monitoring logs --selector 'app.kubernetes.io/name in (prometheus, prometheus-adapter)' --prefix --tail 20 || true
  fi
  finish "$1"
}

paths=$(make --silent --no-print-directory upstream TOOL="metrics-server prometheus prometheus-adapter")
mapfile -t programs <<<"$paths"
start horizontal-pod-autoscaler-operator
trap 'leave $?' EXIT
load_images "${programs[@]}"
add_metrics_server

scaled=burner
add_burner
scale_by Resource 'resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}'
pod=$(first_pod)
grows burn main
shrinks rest main

scale_by ContainerResource \
  'containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 50}}'
pod=$(first_pod)
scaled_at=$(autoscaler '{.status.lastScaleTime}')
burn beside
within 120 takes beside 150
# Two periods of the autoscaler, in which it cannot but have looked.
within 120 is_measured_after $(($(measured_at) + 30))
[ "$(autoscaler '{.status.lastScaleTime}')" = "$scaled_at" ] || fail "it scales by another container"
saw "what the other container burns does not count, while they take $(usage | paste --serial --delimiters ,)"
rest beside
grows burn main
shrinks rest main

scaled=worker
add_tellers
add_prometheus
add_prometheus_adapter jobs_waiting orders_waiting

scale_by Pods 'pods: {metric: {name: jobs_waiting}, target: {type: AverageValue, averageValue: 10}}'
pod=$(first_pod)
grows tell jobs_waiting 40
shrinks tell jobs_waiting 0

scale_by Object "object: {metric: {name: jobs_waiting}, target: {type: Value, value: 10},
  describedObject: {apiVersion: apps/v1, kind: Deployment, name: worker}}"
pod=$(first_pod)
grows tell jobs_waiting 40
shrinks tell jobs_waiting 0

scale_by External 'external: {metric: {name: orders_waiting}, target: {type: AverageValue, averageValue: 10}}'
pod=queue
grows tell orders_waiting 40
shrinks tell orders_waiting 0
step "all seen"
