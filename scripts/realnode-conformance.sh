#!/usr/bin/env bash
# conformance.sh on a real node of this machine, which has no registry in reach: what the tests run in their pods is built
# here, of upstream's agnhost, of busybox and of this machine's own programs. Pods that always pull have agnhost from a
# registry that is agnhost itself, on each node.
#   REALNODE=path/to/realnode realnode-conformance.sh OPERATOR...    as root, after make images; node.sh says what $REALNODE is
#   ONE_IMAGE=1 for the image that has all operators, after make image OPERATOR=operators
#   ONE_PROCESS=1 for one process in the place of kube-controller-manager, after make image OPERATOR=operators; no OPERATOR
#   FOCUS=... for the tests with names that match this regular expression; those of several lines run beside each other
#   NODES=3 for two more nodes, as realnode-further-node.sh starts them
#   SKIP=..., PROCESSES=...      for those, as conformance.sh has them
#   STORAGE=1 for a CSI driver with snapshots and a default StorageClass, as csi.sh has them, which tests of storage need
#   ADDRESSES=198.51.100.0/24 for Services of type LoadBalancer, from this range, by service-lb-operator's address pools
#   GATES=A=true,B=true for features that are off by default, and all beta APIs
#   APIS=resource.k8s.io/v1alpha3=true,... for more versions of APIs
#   METRICS_SERVER=path/to/metrics-server, built already; otherwise it is found or built, if horizontal-pod-autoscaler-operator
#   is there
#   SHADOWS=1 under a whole kube-controller-manager, with the operators beside it as shadows: shows what each found to write
# Of the real node it also has the folder of its kubeconfig, with pki/ca.crt, ca.key and sa.key for the operators that sign.
# Needs Go, kubectl, buildah, and of Debian's packages: busybox-static, bash, netcat-openbsd, curl, wget, util-linux, iptables,
# stress; with SHADOWS also jq.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh
# shellcheck source=scripts/node-image.sh
. scripts/node-image.sh
# shellcheck source=scripts/metrics-server.sh
. scripts/metrics-server.sh

for program in go kubectl buildah busybox bash nc.openbsd curl wget nsenter iptables stress ${SHADOWS:+jq}; do
  command -v "$program" >/dev/null || fail "missing: $program"
done

address_pools=--address-pools=kube-system/address-pools
if [ -n "${ADDRESSES:-}" ] && [ -z "${ONE_PROCESS:-}" ]; then
  case " $* " in *' service-lb-operator '*) ;; *) fail "ADDRESSES needs ONE_PROCESS=1 or service-lb-operator" ;; esac
fi
as_client=()
case ${NODES:=1} in [1-9]) ;; *) fail "there can be 1 to 9 nodes, not $NODES" ;; esac
# From localhost containerd pulls without TLS.
tests=localhost:5000
agnhost=agnhost:2.63.0

# own PROGRAM NAME: a program of this machine, with the libraries it loads, under this name.
own() {
  local library program
  program=$(readlink --canonicalize "$(command -v "$1")")
  install -D "$program" "$work/files/bin/$2"
  for library in $(ldd "$program" | grep --only-matching '/[^ ]*'); do
    install -D "$library" "$work/files$library"
  done
}

# upstream NAME PROGRAM: a program of upstream's images, as this one.
upstream() {
  CGO_ENABLED=0 go build -C e2e/tools/kubernetes -buildvcs=false -ldflags '-s -w' -o "$work/files/$2" \
    "k8s.io/kubernetes/test/images/$1"
}

# publish NAME:TAG: this image of the tests, as files that agnhost serves: each has its digest in its path, and the tag tells
# the manifest's.
publish() {
  local digest file folder pushed=$work/pushed
  folder=$published/${1%:*}
  buildah push --quiet --format v2s2 "$tests/$1" "dir:$pushed"
  digest=$(sha256sum "$pushed/manifest.json" | head --bytes 64)
  install -D "$pushed/manifest.json" "$folder/manifests/sha256/${digest:0:2}/$digest/data"
  echo "sha256:$digest" >"$folder/manifests/${1#*:}"
  rm "$pushed/manifest.json" "$pushed/version"
  for file in "$pushed"/*; do
    digest=$(basename "$file")
    install -D "$file" "$folder/blobs/sha256/${digest:0:2}/$digest/data"
  done
  rm -r "$pushed"
}

# In a shell of its own, which takes its files away however it ends.
load_images() (
  work=$(mktemp --directory)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/files/bin" "$work/files/tmp" "$work/files/var/tmp" "$work/files/etc"
  chmod 1777 "$work/files/tmp" "$work/files/var/tmp"
  cp "$(command -v busybox)" "$work/files/bin/busybox"
  for applet in $(busybox --list); do
    case $applet in
      # A shell of busybox prefers its own nc, which lacks the options that tests give it, as its dd does; its static wget
      # looks up names with libraries of another build, and crashes.
      busybox | ash | sh | dd | nc | nsenter | wget) ;;
      *) ln -s busybox "$work/files/bin/$applet" ;;
    esac
  done
  own bash sh
  own nc.openbsd nc
  own dd dd
  own curl curl
  own wget wget
  own nsenter enter
  # Tests enter the mounts of process 1, which some machines allow nobody. The kubelet sees the same ones.
  cat >"$work/files/bin/nsenter" <<'SH'
#!/bin/sh
process=/rootfs/proc/1
for file in /rootfs/proc/[0-9]*/comm; do
  { read -r name <"$file"; } 2>/dev/null && [ "$name" = kubelet ] && process=${file%/comm}
done
for argument; do
  shift
  case $argument in --mount=/rootfs/proc/1/ns/mnt) argument=--mount=$process/ns/mnt ;; esac
  set -- "$@" "$argument"
done
exec enter "$@"
SH
  chmod +x "$work/files/bin/nsenter"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$work/files/etc/passwd"
  echo 'root:x:0:' >"$work/files/etc/group"
  # Tests with several volumes run a shell in the last one.
  for name in busybox:1.36.1-1 busybox:1.37.0-1 glibc-dns-testing:2.0.0; do
    image "$tests/$name" '[]' '["sh"]'
  done

  # Takes as much CPU, and by stress as much memory, as it is asked to.
  upstream resource-consumer consumer
  upstream resource-consumer/consume-cpu consume-cpu/consume-cpu
  own stress stress
  image "$tests/resource-consumer:1.14" '["/consumer"]' '[]'
  rm -r "$work/files/consumer" "$work/files/consume-cpu" "$work/files/bin/stress"

  upstream agnhost agnhost
  # Of the files of upstream's image those that tests serve, and take away.
  cp "$(go list -C e2e/tools/kubernetes -m -f '{{.Dir}}' k8s.io/kubernetes)"/test/images/agnhost/porter/localhost.* \
    "$work/files"
  for name in agnhost:2.55 "$agnhost"; do
    image "$tests/$name" '["/agnhost"]' '["pause"]'
  done
  publish "$agnhost"
  for tag in 1.15-4 1.27-0; do
    image "$tests/nginx:$tag" '["/agnhost"]' '["netexec", "--http-port=80"]'
  done
  image registry.k8s.io/pause:3.10.2 '["/agnhost"]' '["pause"]'
  [ -z "$metrics_program" ] || program_image "$metrics_server" "$metrics_program"
)

# On every node, as each pulls from its own localhost, and whatever taints tests give it.
serve_images() {
  mkdir -p dist
  echo "promoterE2eRegistry: $tests" >dist/registries.yaml
  export KUBE_TEST_REPO_LIST=$PWD/dist/registries.yaml
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: registry, namespace: kube-system}
spec:
  selector: {matchLabels: {app: registry}}
  template:
    metadata: {labels: {app: registry}}
    spec:
      hostNetwork: true
      tolerations: [{operator: Exists}]
      containers:
      - name: registry
        image: $tests/$agnhost
        args: [fake-registry-server]
        volumeMounts: [{name: images, mountPath: /var/registry, readOnly: true}]
      volumes:
      - name: images
        hostPath: {path: $published, type: Directory}
YAML
  system rollout status daemonset/registry --timeout 120s >/dev/null
}

# A gateway of this machine may answer for any address, and a Service that is gone would seem to be there. What kube-proxy
# sends nowhere is refused: its rules come before these.
refuse_services() {
  local chain
  for chain in OUTPUT FORWARD; do
    iptables "$1" "$chain" --destination "$services" --jump REJECT
  done
}
# Services of type LoadBalancer get addresses of this range, and the tests run in a network of their own: a node's own packets
# to a Service keep no source address, and pass where its pods do.
add_addresses() {
  ip netns add client
  ip link add client type veth peer name eth0 netns client
  ip address add 203.0.113.1/30 dev client
  ip link set client up
  ip -netns client address add 203.0.113.2/30 dev eth0
  ip -netns client link set lo up
  ip -netns client link set eth0 up
  ip -netns client route add default via 203.0.113.1
  as_client=(ip netns exec client)
  system create configmap address-pools --from-literal "tests={\"addresses\": [\"$ADDRESSES\"], \"loadBalancerClass\": \"\"}" >/dev/null
}
leave() {
  local number
  [ -z "${follower:-}" ] || kill "$follower" || true
  refuse_services --delete || true
  [ -z "${ADDRESSES:-}" ] || ip netns delete client || true
  for number in $(further); do scripts/realnode-further-node.sh "$number" down || true; done
  finish "$1"
}

# give OPERATOR [FILE...] -- FLAG...: these files of the cluster, in /keys, and these flags.
give() {
  local operator=$1 files=() flags
  shift
  while [ "$1" != -- ]; do
    files+=("--from-file=$(dirname "$KUBECONFIG")/pki/$1")
    shift
  done
  shift
  flags=$(printf ', {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "%s"}' "$@")
  if [ ${#files[@]} != 0 ]; then
    system create secret generic "$operator" "${files[@]}" >/dev/null
    flags+=', {"op": "add", "path": "/spec/template/spec/securityContext/fsGroup", "value": 65532},
      {"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "keys", "secret": {"secretName": "'$operator'", "defaultMode": 288}}]},
      {"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts", "value": [{"name": "keys", "mountPath": "/keys", "readOnly": true}]}'
  fi
  system patch deployment "$operator" --type json --patch "[${flags#, }]" >/dev/null
}

# give_gates OPERATOR GATE...: those of them that are on in the cluster.
give_gates() {
  local operator=$1 gate on=
  shift
  for gate in "$@"; do
    case ",$GATES," in *",$gate=true,"*) on+=,$gate=true ;; esac
  done
  [ -z "$on" ] || give "$operator" -- "--feature-gates=${on#,}"
}

# What the realnode's kube-controller-manager has in flags, or nodes have without it.
equip() {
  local operator
  for operator in "${operators[@]}"; do
    case $operator in
    certificatesigningrequest-signing-operator)
      give "$operator" ca.crt ca.key -- --cluster-signing-cert-file=/keys/ca.crt --cluster-signing-key-file=/keys/ca.key
      ;;
    serviceaccount-token-operator)
      give "$operator" sa.key ca.crt -- --service-account-private-key-file=/keys/sa.key --root-ca-file=/keys/ca.crt
      ;;
    horizontal-pod-autoscaler-operator)
      give_gates "$operator" HPAScaleToZero
      ;;
    resourceclaim-operator) give_gates "$operator" DRAWorkloadResourceClaims ;;
    device-taint-eviction-operator) give_gates "$operator" DRADeviceTaintRules DRAWorkloadResourceClaims ;;
    service-lb-operator) [ -z "${ADDRESSES:-}" ] || give "$operator" -- "$address_pools" ;;
    node-ipam-operator) give "$operator" -- --allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16 ;;
    esac
  done
}

# Tests of taints end all pods of a node, and would end the operators that they are about.
tolerate_tests() {
  local operator
  for operator in "${operators[@]}"; do
    system patch deployment "$operator" --type json --patch \
      '[{"op": "add", "path": "/spec/template/spec/tolerations/-", "value": {"key": "kubernetes.io/e2e-evict-taint-key", "operator": "Exists"}}]' >/dev/null
  done
  for operator in "${operators[@]}"; do
    system rollout status "deployment/$operator" --timeout 120s >/dev/null
  done
}

# ask OPERATOR PATH: the answer of its shadow.
ask() {
  local address
  address=$(system get pods --selector "app.kubernetes.io/name=$1" --output 'jsonpath={.items[0].status.podIP}')
  curl --silent --show-error --insecure --fail --header "Authorization: Bearer $token" "https://$address:10257$2"
}

# Differences go with their objects, and tests delete theirs: so the shadows are asked all the time. One line for each
# difference, with what is the same in all its tellings.
follow_shadows() {
  local operator
  while true; do
    for operator in "${operators[@]}"; do
      ask "$operator" /debug/shadow | jq --compact-output '.differences[] + {operator: .operator}' >>"$shadows/seen.jsonl" || true
    done
    sort --unique --output "$shadows/seen.jsonl" "$shadows/seen.jsonl"
    sleep 1
  done
}

show_shadows() {
  local operator
  for operator in "${operators[@]}"; do
    ask "$operator" /debug/shadow >"$shadows/$operator.json"
    ask "$operator" /metrics >"$shadows/$operator.metrics"
    jq --raw-output '"\(.operator): looked at \(.lookedAt), \(.moving) moving, \(.differences | length) differences"' "$shadows/$operator.json"
  done
  step "differences at rest while the tests ran: $(wc --lines <"$shadows/seen.jsonl")"
  jq --compact-output . "$shadows/seen.jsonl"
}

case " $* " in
*' horizontal-pod-autoscaler-operator '*)
  metrics_program=${METRICS_SERVER:-$(make --silent --no-print-directory upstream TOOL="metrics-server")}
  ;;
*) metrics_program= ;;
esac
if [ -n "${STORAGE:-}" ]; then
  # shellcheck source=scripts/csi.sh
  . scripts/csi.sh
  build_sidecars
fi
export GATES=${GATES:-}
[ -z "$GATES" ] || export APISERVER_EXTRA="--runtime-config=api/beta=true${APIS:+,$APIS} --feature-gates=$GATES"
if [ -n "${SHADOWS:-}" ]; then
  shadows=dist/shadows
  rm -rf "$shadows"
  mkdir -p "$shadows"
  touch "$shadows/seen.jsonl"
  start_shadows "$@"
  token=$(system create token operators-viewer --duration 4h)
elif [ -n "${ONE_PROCESS:-}" ]; then
  start_one_process ${GATES:+"--feature-gates=$GATES"} ${ADDRESSES:+"$address_pools"}
else
  start "$@"
fi
# By its file the kubelet would let everyone whom it knows do everything; tests await that it asks the apiserver.
end_kubelet
kubelet_command+=(--authorization-mode=Webhook ${GATES:+"--feature-gates=$GATES"})
begin_kubelet
[ -z "$GATES" ] || gate_scheduler
equip
tolerate_tests
published=$(dirname "$KUBECONFIG")/registry
services=$(kubectl get servicecidr kubernetes --output 'jsonpath={.spec.cidrs[0]}')
trap 'leave $?' EXIT
refuse_services --insert
[ -z "${ADDRESSES:-}" ] || add_addresses
add_nodes
load_images
serve_images
step "the tests have their images"
if [ -n "${STORAGE:-}" ]; then
  load_storage_images
  install_snapshots
  install_driver
  step "volumes have a driver"
fi
[ -z "$metrics_program" ] || add_metrics_server
if [ -n "${SHADOWS:-}" ]; then
  follow_shadows &
  follower=$!
fi
mapfile -t focus <<<"${FOCUS:-}"
"${as_client[@]}" scripts/conformance.sh ${FOCUS:+"${focus[@]}"}
step "all passed"
[ -z "${SHADOWS:-}" ] || show_shadows
