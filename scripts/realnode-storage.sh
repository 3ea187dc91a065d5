#!/usr/bin/env bash
# The operators of storage on a real node, with upstream's CSI sidecars and a driver that keeps volumes on the disk: claims,
# pods with data, expansion, snapshots, clones, changed attributes, ephemeral volumes, a node that dies and whose volume is
# attached elsewhere, and nothing that is left in the end.
#   REALNODE=path/to/realnode realnode-storage.sh    as root, after the image that has all; node.sh says what $REALNODE is
# Needs Rust, Go, kubectl, buildah, jq, openssl, and of Debian's packages: busybox-static, xfsprogs, util-linux.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/node.sh
. scripts/node.sh
# shellcheck source=scripts/node-image.sh
. scripts/node-image.sh
# shellcheck source=scripts/csi.sh
. scripts/csi.sh
for program in cargo kubectl jq openssl; do command -v "$program" >/dev/null || fail "missing: $program"; done

ONE_IMAGE=1
NODES=2
second=node-real-2
shell=$csi_images/$hostpathplugin

leave() {
  if [ "$1" != 0 ]; then
    kubectl get persistentvolumeclaims,persistentvolumes,volumeattachments,volumesnapshots,volumesnapshotcontents || true
    kubectl describe pods || true
    system logs deployment/csi-hostpath --all-containers --prefix --tail 20 || true
  fi
  scripts/realnode-further-node.sh 2 down || true
  finish "$1"
}

# add_claim NAME SIZE [FIELD...]: of the default class, and with these fields of its spec.
add_claim() {
  kubectl create --filename - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: $2}}
$(printf '  %s\n' "${@:3}")
YAML
}
# add_pod NAME VOLUME: with this volume at /data.
add_pod() {
  create_pod "$1" "$2" 'volumeMounts: [{name: data, mountPath: /data}]'
}
# add_block_pod NAME VOLUME: with this volume as the device /data.
add_block_pod() {
  create_pod "$1" "$2" 'volumeDevices: [{name: data, devicePath: /data}]'
}
create_pod() {
  kubectl create --filename - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: shell, image: "$shell", command: [sleep, "100000"], $3}]
  volumes: [{name: data, $2}]
YAML
  kubectl wait --for condition=Ready "pod/$1" --timeout 120s >/dev/null
}
claimed() { echo "persistentVolumeClaim: {claimName: $1}"; }
# write POD TEXT, reads POD TEXT: at the beginning of its volume, be that a folder or a device.
write() { kubectl exec "$1" -- sh -c "if [ -d /data ]; then echo $2 >/data/file; else echo $2 | dd of=/data conv=notrunc 2>/dev/null; fi; sync"; }
reads() {
  [ "$(kubectl exec "$1" -- sh -c 'if [ -d /data ]; then cat /data/file; else dd if=/data bs=64 count=1 2>/dev/null; fi' | tr -d '\0' | head --lines 1)" = "$2" ] ||
    fail "$1 does not read $2"
}

field() { kubectl get "$1" --ignore-not-found --output "jsonpath=$2"; }
claim() { field "persistentvolumeclaim/$1" "$2"; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }
has() { case " $(field "$1" "$2") " in *"$3"*) ;; *) return 1 ;; esac; }
gone() { [ -z "$(kubectl get "$1" --ignore-not-found --output name)" ]; }
none() { [ -z "$(kubectl get "$1" --all-namespaces --output name)" ]; }
# The nodes of the VolumeAttachments of a volume.
attached() {
  kubectl get volumeattachments --output json |
    jq --raw-output --arg volume "$1" '[.items[] | select(.spec.source.persistentVolumeName == $volume) | .spec.nodeName] | join(" ")'
}
attached_to() { [ "$(attached "$1")" = "$2" ]; }
node_reports() { has "node/$1" '{.status.volumesAttached[*].name}' "^$2"; }
# What the driver keeps, without its own files.
kept() { find "$csi_data/$csi_driver" -mindepth 1 ! -name lock ! -name state.json; }
driver_knows() { jq --raw-output "$1" "$csi_data/$csi_driver/state.json"; }
# remove_pods NAME...: and waits until they are gone.
remove_pods() { kubectl delete pods "$@" --timeout 60s >/dev/null; }

build_sidecars
start persistentvolume-binder-operator persistentvolume-attach-detach-operator persistentvolume-expander-operator \
  persistentvolume-protection-operator persistentvolumeclaim-protection-operator volumeattributesclass-protection-operator \
  ephemeral-volume-operator selinux-warning-operator \
  node-lifecycle-operator taint-eviction-operator pod-garbage-collector-operator
trap 'leave $?' EXIT
add_nodes
load_storage_images
install_snapshots
install_driver
install_driver_on "$second" "$(dirname "$KUBECONFIG")/$second/kubelet"
kubectl cordon "$second" >/dev/null
step "volumes have a driver on two nodes"

add_claim data 64Mi
kubectl wait --for 'jsonpath={.status.phase}=Bound' persistentvolumeclaim/data --timeout 60s >/dev/null
volume=$(claim data '{.spec.volumeName}')
is "persistentvolume/$volume" '{.spec.claimRef.uid}' "$(claim data '{.metadata.uid}')" || fail "another claim has the volume"
is persistentvolumeclaim/data '{.spec.storageClassName}' hostpath || fail "the claim has not the default class"
for object in persistentvolumeclaim/data "persistentvolume/$volume"; do
  has "$object" '{.metadata.finalizers}' -protection || fail "$object has no finalizer"
done
step "a claim is bound to a volume that was made for it"

add_pod writer "$(claimed data)"
write writer one
reads writer one
attached_to "$volume" node-real || fail "attached to '$(attached "$volume")'"
step "a pod has it, attached to its node, and writes to it"

kubectl delete persistentvolumeclaim data --wait=false >/dev/null
kubectl delete persistentvolume "$volume" --wait=false >/dev/null
add_claim later 64Mi
kubectl wait --for 'jsonpath={.status.phase}=Bound' persistentvolumeclaim/later --timeout 60s >/dev/null
! gone persistentvolumeclaim/data || fail "the claim of a running pod is gone"
! gone "persistentvolume/$volume" || fail "the volume of a bound claim is gone"
reads writer one
remove_pods writer
within 60 gone persistentvolumeclaim/data
within 60 gone "persistentvolume/$volume"
attached_to "$volume" '' || fail "still attached to '$(attached "$volume")'"
step "deleted while the pod ran, claim and volume stayed until it had ended, and then went"

volume=$(claim later '{.spec.volumeName}')
add_pod writer "$(claimed later)"
write writer two
kubectl patch persistentvolumeclaim later --patch '{"spec": {"resources": {"requests": {"storage": "128Mi"}}}}' >/dev/null
within 60 is persistentvolumeclaim/later '{.status.capacity.storage}' 128Mi
is "persistentvolume/$volume" '{.spec.capacity.storage}' 128Mi || fail "the volume has another size than the claim"
[ -z "$(claim later '{.status.conditions}')" ] || fail "the claim has conditions: $(claim later '{.status.conditions}')"
reads writer two
step "the claim was expanded under a running pod"

kubectl apply --filename - >/dev/null <<YAML
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: gold}
driverName: $csi_driver
parameters: {tier: gold}
YAML
within 30 has volumeattributesclass/gold '{.metadata.finalizers}' vac-protection
kubectl patch persistentvolumeclaim later --patch '{"spec": {"volumeAttributesClassName": "gold"}}' >/dev/null
within 60 is persistentvolumeclaim/later '{.status.currentVolumeAttributesClassName}' gold
is "persistentvolume/$volume" '{.spec.volumeAttributesClassName}' gold || fail "the volume has another class"
handle=$(field "persistentvolume/$volume" '{.spec.csi.volumeHandle}')
[ "$(driver_knows ".Volumes[\"$handle\"].Parameters.tier")" = gold ] || fail "the driver was not told"
kubectl delete volumeattributesclass gold --wait=false >/dev/null
step "its VolumeAttributesClass was changed"

kubectl apply --filename - >/dev/null <<'YAML'
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: earlier}
spec: {volumeSnapshotClassName: hostpath, source: {persistentVolumeClaimName: later}}
YAML
kubectl wait --for 'jsonpath={.status.readyToUse}=true' volumesnapshot/earlier --timeout 60s >/dev/null
write writer three
add_claim restored 128Mi 'dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: earlier}'
add_claim cloned 128Mi 'dataSource: {kind: PersistentVolumeClaim, name: later}'
add_pod restored "$(claimed restored)"
add_pod cloned "$(claimed cloned)"
reads restored two
reads cloned three
write cloned four
reads writer three
step "a snapshot has what was there before, a clone what was there later, and neither is the other"

add_claim device 16Mi 'volumeMode: Block'
add_block_pod device "$(claimed device)"
write device five
kubectl patch persistentvolumeclaim device --patch '{"spec": {"resources": {"requests": {"storage": "32Mi"}}}}' >/dev/null
within 60 is persistentvolumeclaim/device '{.status.capacity.storage}' 32Mi
reads device five
step "a block volume was written and expanded"

add_pod brief 'ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}}'
write brief six
is persistentvolumeclaim/brief-data '{.metadata.ownerReferences[0].uid}' "$(field pod/brief '{.metadata.uid}')" || fail "another owner"
volume=$(claim brief-data '{.spec.volumeName}')
remove_pods brief
within 60 gone persistentvolumeclaim/brief-data
within 60 gone "persistentvolume/$volume"
step "a generic ephemeral volume came and went with its pod"

! gone volumeattributesclass/gold || fail "a class that a claim has is gone"
remove_pods writer restored cloned device
kubectl delete volumesnapshot earlier --timeout 60s >/dev/null
kubectl delete persistentvolumeclaims later restored cloned device --timeout 60s >/dev/null
within 60 gone volumeattributesclass/gold
within 60 none persistentvolumes
within 60 none volumeattachments
within 60 none volumesnapshotcontents
[ -z "$(kept)" ] || fail "the driver still keeps $(kept)"
step "everything was deleted, the class last, and the driver keeps nothing"

kubectl uncordon "$second" >/dev/null
kubectl cordon node-real >/dev/null
kubectl create --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: shell
        image: $shell
        command: [sleep, "100000"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
YAML
within 60 has pod/db-0 '{.metadata.name}' db-0
kubectl wait --for condition=Ready pod/db-0 --timeout 120s >/dev/null
is pod/db-0 '{.spec.nodeName}' "$second" || fail "the pod is on another node"
write db-0 seven
volume=$(claim data-db-0 '{.spec.volumeName}')
handle=$(field "persistentvolume/$volume" '{.spec.csi.volumeHandle}')
attached_to "$volume" "$second" || fail "attached to '$(attached "$volume")'"
node_reports "$second" "$handle" || fail "$second does not report the volume"
before=$(field pod/db-0 '{.metadata.uid}')
kubectl uncordon node-real >/dev/null
step "a StatefulSet's pod writes on the second node"

scripts/realnode-further-node.sh 2 down
since=$SECONDS
within 120 is "node/$second" '{.status.conditions[?(@.type=="Ready")].status}' Unknown
step "that node was killed, and is Unknown after $((SECONDS - since)) s"
attached_to "$volume" "$second" || fail "detached from a node that may still write"
is pod/db-0 '{.metadata.uid}' "$before" || fail "there is another pod of the same name"
kubectl taint node "$second" node.kubernetes.io/out-of-service=dead:NoExecute >/dev/null
since=$SECONDS
another_pod() { ! is pod/db-0 '{.metadata.uid}' "$before" && has pod/db-0 '{.metadata.name}' db-0; }
within 120 another_pod
kubectl wait --for condition=Ready pod/db-0 --timeout 120s >/dev/null
is pod/db-0 '{.spec.nodeName}' node-real || fail "the pod is on another node"
attached_to "$volume" node-real || fail "attached to '$(attached "$volume")'"
[ "$(driver_knows ".Volumes[\"$handle\"].Node")" = node-real ] || fail "the driver has it elsewhere"
reads db-0 seven
step "told that it is out of service, the pod reads its data on the other node after $((SECONDS - since)) s"
! system logs deployment/csi-hostpath --container hostpath | grep --quiet 'is attached to' ||
  fail "an attach to a second node was asked for"

kubectl delete statefulset db --timeout 60s >/dev/null
kubectl delete node "$second" >/dev/null
within 60 gone pod/db-0
kubectl delete persistentvolumeclaim data-db-0 --timeout 60s >/dev/null
for kind in persistentvolumeclaims persistentvolumes volumeattachments volumesnapshots volumesnapshotcontents volumeattributesclasses; do
  within 60 none "$kind"
done
[ -z "$(kept)" ] || fail "the driver still keeps $(kept)"
[ "$(driver_knows '(.Volumes | length) + (.Snapshots | length)')" = 0 ] || fail "the driver still knows of volumes"
! grep --quiet 'kubernetes.io~csi' /proc/mounts || fail "still mounted: $(grep 'kubernetes.io~csi' /proc/mounts)"
[ -z "$(storage_loops)" ] || fail "loop devices: $(losetup --list)"
step "everything was deleted, and nothing is left on the disk"
