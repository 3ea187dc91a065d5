# Sourced after node.sh and node-image.sh by who needs storage on the node: upstream's CSI sidecars and snapshot controller,
# and our host-path driver (e2e/tools/hostpath), under the names that upstream's tests give their images.
# Needs Go, buildah, and of Debian's packages: busybox-static, xfsprogs, util-linux.
# shellcheck shell=bash

# Where manifests of drivers expect the kubelet's folder.
kubelet_root=/var/lib/kubelet
# Where the driver keeps its volumes, each driver in a folder of its name.
csi_data=/var/lib/csi-hostpath-data
csi_driver=hostpath.csi.k8s.io
csi_images=registry.k8s.io/sig-storage
# Upstream's programs, each with the name and version of the image in whose place it is.
sidecars=(csi-attacher:v4.11.0 csi-provisioner:v6.1.1 csi-resizer:v2.1.0 csi-snapshotter:v8.5.0 snapshot-controller:v8.5.0)
hostpathplugin=hostpathplugin:v1.17.1
registrar=csi-node-driver-registrar:v2.16.0
probe=livenessprobe:v2.18.0

for program in go buildah busybox mkfs.xfs losetup; do command -v "$program" >/dev/null || fail "missing: $program"; done

# storage_loops: the loop devices that show the driver's volumes.
storage_loops() {
  losetup --list --noheadings --output NAME,BACK-FILE |
    awk -v data="$csi_data/" '$2 ~ /\/csi-data-dir\// || index($2, data) == 1 { print $1 }'
}

# begin_storage: before any pod runs, the kubelet gets that folder, and sees what drivers in pods mount there.
# shellcheck disable=SC2034
begin_storage() {
  local folder
  # Any kubelet makes $kubelet_root/device-plugins, but pods only where it is at home.
  for folder in "$kubelet_root/pods" "$csi_data"; do
    [ ! -e "$folder" ] || fail "$folder is there already, and would be removed at the end"
  done
  storage_begun=1
  mount --make-rshared /
  end_kubelet
  kubelet_command+=(--root-dir "$kubelet_root")
  begin_kubelet
}
# end_storage: what the node, and tests that failed, left on this machine. The node is down.
end_storage() {
  storage_loops | xargs --no-run-if-empty losetup --detach
  awk -v root="$kubelet_root/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort --reverse |
    xargs --no-run-if-empty --max-args 1 umount --lazy
  rm -rf --one-file-system "$kubelet_root" "$csi_data"
}

# own_program FILE NAME: one of e2e/tools/hostpath, where the image has it.
own_program() { CGO_ENABLED=0 go build -C e2e/tools/hostpath -buildvcs=false -ldflags '-s -w' -o "$1" "./$2"; }

# build_sidecars: finds or builds upstream's programs, before a node waits for that.
build_sidecars() {
  local paths
  paths=$(make --silent --no-print-directory upstream TOOL="${sidecars[*]%%:*}")
  mapfile -t sidecar_programs <<<"$paths"
}

# In a shell of its own, which takes its files away however it ends.
load_storage_images() (
  work=$(mktemp --directory)
  trap 'rm -rf "$work"' EXIT
  for index in "${!sidecars[@]}"; do
    program_image "$csi_images/${sidecars[index]}" "${sidecar_programs[index]}"
  done
  for name in "$registrar" "$probe"; do
    own_program "$work/own" "${name%:*}"
    program_image "$csi_images/$name" "$work/own"
  done
  # Tests run a shell in it, and it copies volumes.
  rm -rf "$work/files"
  mkdir -p "$work/files/bin" "$work/files/tmp"
  cp "$(command -v busybox)" "$work/files/bin/busybox"
  for applet in sh cat cp base64 dd ls mkdir mv rm sleep sync test; do ln -s busybox "$work/files/bin/$applet"; done
  own_program "$work/files/hostpathplugin" hostpathplugin
  image "$csi_images/$hostpathplugin" '["/hostpathplugin"]' '[]'
)

# install_snapshots: upstream's kinds and its controller.
install_snapshots() {
  local client controller
  client=$(go list -C e2e/tools/csi-sidecars -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/client/v8)
  controller=$(go list -C e2e/tools/csi-sidecars -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/v8)
  kubectl apply --kustomize "$client/config/crd" >/dev/null
  within 60 serves_snapshots
  kubectl kustomize "$controller/deploy/kubernetes/snapshot-controller" |
    sed -e 's/replicas: 2/replicas: 1/' -e 's/minReadySeconds: .*/minReadySeconds: 0/' | kubectl apply --filename - >/dev/null
  system rollout status deployment/snapshot-controller --timeout 120s >/dev/null
}

serves_snapshots() { kubectl get volumesnapshots,volumesnapshotclasses,volumesnapshotcontents >/dev/null 2>&1; }

# install_driver: its controller with upstream's sidecars on the first node, classes, and the default StorageClass. The roles
# are those that upstream's tests give the sidecars.
install_driver() {
  local manifests role
  manifests=$(go list -C e2e/tools/kubernetes -m -f '{{.Dir}}' k8s.io/kubernetes)/test/e2e/testing-manifests/storage-csi
  system create serviceaccount csi-hostpath >/dev/null
  for role in attacher provisioner resizer snapshotter/csi-snapshotter; do
    kubectl apply --filename "$manifests/external-$role" >/dev/null
    role=external-${role%%/*}-runner
    kubectl create clusterrolebinding "csi-hostpath-$role" --clusterrole "$role" --serviceaccount kube-system:csi-hostpath >/dev/null
  done
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: $csi_driver}
spec: {volumeLifecycleModes: [Persistent, Ephemeral], podInfoOnMount: true, fsGroupPolicy: File}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: hostpath, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: $csi_driver
allowVolumeExpansion: true
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: hostpath}
driver: $csi_driver
deletionPolicy: Delete
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: csi-hostpath, namespace: kube-system}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: csi-hostpath}}
  template:
    metadata: {labels: {app: csi-hostpath}}
    spec:
      serviceAccountName: csi-hostpath
      nodeSelector: {kubernetes.io/hostname: node-real}
      tolerations: [{operator: Exists}]
      containers:
$(driver_container --nodeid=node-real)
$(for sidecar in "${sidecars[@]}"; do sidecar_container "$sidecar"; done)
      volumes:
      - {name: csi, emptyDir: {}}
      - {name: data, hostPath: {path: $csi_data, type: DirectoryOrCreate}}
      - {name: dev, hostPath: {path: /dev, type: Directory}}
YAML
  install_driver_on node-real "$kubelet_root"
  system rollout status deployment/csi-hostpath --timeout 120s >/dev/null
}

# driver_container FLAG... -- [MOUNT...]: the driver in a pod, with more mounts.
driver_container() {
  local flags=''
  while [ $# != 0 ] && [ "$1" != -- ]; do
    flags+=", \"$1\""
    shift
  done
  shift || true
  cat <<YAML
      - name: hostpath
        image: $csi_images/$hostpathplugin
        args: [--endpoint=/csi/csi.sock, --enable-attach, --enable-topology=false, --enable-controller-modify-volume, --accepted-mutable-parameter-names=tier$flags]
        securityContext: {privileged: true}
        volumeMounts:
        - {name: csi, mountPath: /csi}
        - {name: data, mountPath: /csi-data-dir}
        - {name: dev, mountPath: /dev}
$([ $# = 0 ] || printf '        - %s\n' "$@")
YAML
}
# sidecar_container NAME:TAG: beside it; the snapshot controller is not one.
sidecar_container() {
  [ "${1%:*}" != snapshot-controller ] || return 0
  cat <<YAML
      - name: ${1%:*}
        image: $csi_images/$1
        args: [--csi-address=/csi/csi.sock]
        volumeMounts: [{name: csi, mountPath: /csi}]
YAML
}

# install_driver_on NODE ROOT: so that the kubelet there, whose folder is ROOT, mounts its volumes. All nodes of this machine
# reach the same volumes.
install_driver_on() {
  kubectl apply --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: csi-hostpath-$1, namespace: kube-system}
spec:
  selector: {matchLabels: {app: csi-hostpath-$1}}
  template:
    metadata: {labels: {app: csi-hostpath-$1}}
    spec:
      nodeSelector: {kubernetes.io/hostname: $1}
      tolerations: [{operator: Exists}]
      containers:
$(driver_container "--nodeid=$1" -- "{name: kubelet, mountPath: $2, mountPropagation: Bidirectional}")
      - name: registrar
        image: $csi_images/$registrar
        args: [--csi-address=/csi/csi.sock, --kubelet-registration-path=$2/plugins/$csi_driver/csi.sock]
        volumeMounts:
        - {name: csi, mountPath: /csi}
        - {name: registration, mountPath: /registration}
      volumes:
      - {name: csi, hostPath: {path: $2/plugins/$csi_driver, type: DirectoryOrCreate}}
      - {name: registration, hostPath: {path: $2/plugins_registry, type: DirectoryOrCreate}}
      - {name: kubelet, hostPath: {path: $2, type: Directory}}
      - {name: data, hostPath: {path: $csi_data, type: DirectoryOrCreate}}
      - {name: dev, hostPath: {path: /dev, type: Directory}}
YAML
  system rollout status "daemonset/csi-hostpath-$1" --timeout 120s >/dev/null
  within 60 has_driver "$1"
}
has_driver() { kubectl get csinode "$1" --output 'jsonpath={.spec.drivers[*].name}' 2>/dev/null | grep --quiet --word-regexp "$csi_driver"; }
