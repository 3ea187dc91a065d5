# Sourced by scripts that start a containerd and a kubelet of their own: their files, in a folder with cni/ and ctd/.
# shellcheck shell=bash

# containerd_files FOLDER NETWORK RANGE [LINE...]: its pods have addresses of this range, in a network of this name; each
# line is one more of its settings, outside of a table.
containerd_files() {
  local folder=$1 network=$2 range=$3
  shift 3
  cat >"$folder/cni/10-bridge.conflist" <<JSON
{"cniVersion":"1.0.0","name":"$network","plugins":[{"type":"ptp","ipMasq":false,"ipam":{"type":"host-local","ranges":[[{"subnet":"$range"}]],"routes":[{"dst":"0.0.0.0/0"}]}},{"type":"portmap","capabilities":{"portMappings":true}}]}
JSON
  cat >"$folder/ctd/config.toml" <<TOML
version = 3
root = "$folder/ctd/root"
state = "$folder/ctd/state"
$(printf '%s\n' "$@")
[grpc]
  address = "$folder/ctd/c.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.k8s.io/pause:3.10"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "$folder/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
TOML
}

# kubelet_file FOLDER [LINE...]: for a kubelet of that containerd; each line is one more of its settings.
kubelet_file() {
  local folder=$1
  shift
  cat >"$folder/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
containerRuntimeEndpoint: unix://$folder/ctd/c.sock
enforceNodeAllocatable: []
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
maxPods: 250
nodeStatusUpdateFrequency: 5s
syncFrequency: 5s
resolvConf: ""
volumePluginDir: $folder/kubelet/plugins
$(printf '%s\n' "$@")
YAML
}
