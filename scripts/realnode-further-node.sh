#!/usr/bin/env bash
# One more node on the machine of the real one, for tests that ask for several: containerd, kubelet and kube-proxy of the
# same programs in a network namespace of their own, on a host of the node's name. The second one is node-real-2 at
# 10.245.0.2 with pods in 10.244.1.0/24, the third one node-real-3 at 10.245.0.3 with pods in 10.244.2.0/24. The addresses of
# nodes are apart, because the first one's kube-proxy takes whoever comes from 10.244.0.0/16 for a pod.
#   realnode-further-node.sh NUMBER up|down     as root, with the $KUBECONFIG of the first one, which node.sh starts
#   realnode-further-node.sh NUMBER load FILE   imports an image
# Of the first one it needs the folder of its kubeconfig, with pki/ca.crt and pki/ca.key, and bin and images beside that;
# and openssl, jq. Cgroups and the logs of pods are apart too: two kubelets of one machine would clear away each other's.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/steps.sh
. scripts/steps.sh
# shellcheck source=scripts/containerd.sh
. scripts/containerd.sh

case ${1:-} in [2-9]) number=$1 ;; *) fail "which node, 2 to 9?" ;; esac
name=node-real-$number link=real-$number range=pods-$number
first=10.244.0.1 address=10.245.0.$number pods=10.244.$((number - 1)).0/24
parts=$(cd "$(dirname "${KUBECONFIG:?names the cluster}")" && pwd)
home=$parts/$name
export PATH=$parts/../bin:$PATH

# Not by ip netns exec, which gives each program mounts of its own: the kubelet's volumes are to be seen by containerd.
inside() { nsenter --net="/run/netns/$name" "$@"; }
begin() {
  local part=$1
  shift
  (cd "$home" && exec setsid nsenter --net="/run/netns/$name" "${on_host[@]}" "$name" "$@" >"$home/$part.log" 2>&1) &
  echo $! >"$home/$part.pid"
}
end() {
  local pid
  pid=$(cat "$home/$1.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 60); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$home/$1.pid"
}
containers() { ctr --address "$home/ctd/c.sock" --namespace k8s.io "$@"; }
cgroups() {
  if [ "$(stat --file-system --format %T /sys/fs/cgroup)" = cgroup2fs ]; then
    echo "/sys/fs/cgroup/$name"
  else
    printf '%s\n' /sys/fs/cgroup/*/ | sed "s|\$|$name|"
  fi
}

connect() {
  ip netns add "$name"
  ip link add "$link" type veth peer name eth0 netns "$name"
  ip link set "$link" up
  inside ip link set lo up
  inside ip address add "$address/32" dev eth0
  inside ip link set eth0 up
  inside ip route add default via "$first" dev eth0 onlink
  ip route add "$address" dev "$link" src "$first"
  ip route add "$pods" via "$address" dev "$link" onlink src "$first"
  sysctl --quiet --write net.ipv4.ip_forward=1
  inside sysctl --quiet --write net.ipv4.ip_forward=1
}

# Its kubeconfig, with a certificate by the cluster's CA.
identity() {
  openssl req -newkey rsa:2048 -nodes -keyout "$home/kubelet.key" -out "$home/kubelet.csr" \
    -subj "/O=system:nodes/CN=system:node:$name" 2>/dev/null
  openssl x509 -req -in "$home/kubelet.csr" -CA "$parts/pki/ca.crt" -CAkey "$parts/pki/ca.key" -out "$home/kubelet.crt" \
    -days 30 -extfile <(printf 'subjectAltName=IP:%s,DNS:%s\nextendedKeyUsage=serverAuth,clientAuth' "$address" "$name") 2>/dev/null
  cp "$KUBECONFIG" "$home/kubelet.kubeconfig"
  local user
  user=$(kubectl config view --output 'jsonpath={.users[0].name}')
  kubectl config --kubeconfig "$home/kubelet.kubeconfig" set-credentials "$user" --embed-certs=true \
    --client-certificate "$home/kubelet.crt" --client-key "$home/kubelet.key" >/dev/null
}

start_containerd() {
  containerd_files "$home" "$range" "$pods" 'disabled_plugins = ["io.containerd.nri.v1.nri"]' \
    "debug.address = \"$home/ctd/debug.sock\""
  begin containerd containerd --config ctd/config.toml
  within 60 answers
  for archive in "$parts"/../images/*.tar; do
    containers images import "$archive" >/dev/null
  done
}
answers() { [ -S "$home/ctd/c.sock" ] && containers images list >/dev/null 2>&1; }

start_kubelet() {
  cgroups | xargs mkdir --parents
  kubelet_file "$home" "cgroupRoot: /$name" \
    "authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $parts/pki/ca.crt}}" \
    'authorization: {mode: Webhook}' \
    'clusterDomain: cluster.local' \
    "clusterDNS: [\"$first\"]" \
    "podLogsDir: $home/logs" \
    "tlsCertFile: $home/kubelet.crt" \
    "tlsPrivateKeyFile: $home/kubelet.key"
  begin kubelet kubelet --config kubelet.yaml --kubeconfig kubelet.kubeconfig --hostname-override "$name" \
    --root-dir "$home/kubelet" --node-ip "$address" ${GATES:+"--feature-gates=$GATES"}
}

# It knows its pods by their interfaces, because the first node's address is one of 10.244.0.0/16 too.
start_proxy() {
  cat >"$home/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $KUBECONFIG}
detectLocalMode: InterfaceNamePrefix
detectLocal: {interfaceNamePrefix: veth}
mode: iptables
hostnameOverride: $name
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0}
YAML
  begin proxy kube-proxy --config proxy.yaml
}

takes_pods() {
  kubectl wait --for condition=Ready "node/$name" --timeout 1s >/dev/null 2>&1 &&
    [ -z "$(kubectl get node "$name" --output 'jsonpath={.spec.taints}')" ]
}

# Containers and their shims outlive containerd; those shims are of this node that talk to its containerd.
down() {
  local pid result
  end proxy
  end kubelet
  for pid in $(containers tasks list --quiet 2>/dev/null || true); do
    containers tasks kill --signal KILL "$pid" >/dev/null 2>&1 || true
  done
  end containerd
  for pid in $(pgrep -x containerd-shim || true); do
    if grep --quiet --null-data --line-regexp --fixed-strings "$home/ctd/c.sock" "/proc/$pid/cmdline" 2>/dev/null; then kill "$pid" || true; fi
  done
  awk -v home="$home/" 'index($2, home) == 1 { print $2 }' /proc/mounts | sort --reverse | xargs --no-run-if-empty --max-args 1 umount --lazy
  # Nobody took the pods' networks down, so their addresses and namespaces are still taken.
  for result in /var/lib/cni/results/"$range"-*; do
    [ -e "$result" ] || continue
    ip netns delete "$(basename "$(jq --raw-output .netns "$result")")" 2>/dev/null || true
    rm "$result"
  done
  rm -rf "/var/lib/cni/networks/$range"
  ip netns delete "$name" 2>/dev/null || true
  ip link delete "$link" 2>/dev/null || true
  cgroups | while read -r group; do
    if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done
}

case ${2:-} in
up)
  down
  rm -rf "$home"
  mkdir -p "$home/ctd" "$home/cni"
  connect
  identity
  start_containerd
  start_kubelet
  start_proxy
  within 120 takes_pods
  ;;
load) containers images import "$3" >/dev/null ;;
down) down ;;
*) fail "up, load FILE or down?" ;;
esac
