#!/usr/bin/env bash
# Writes, on a node of the control plane, what it takes to run operators there as static pods: those that must work before
# a cluster can start any other pod (docs/cold-start.md says which, and why). Each has an identity of its own: a client
# certificate in the name of its ServiceAccount, to which its manifest's roles are bound. Nothing revokes such a certificate,
# so it is short-lived: a timer runs DIR/renew, and running operators take the new ones up.
usage() {
  cat <<'TEXT'
usage: static-pods.sh --server URL [OPTION...] [OPERATOR...]
       static-pods.sh --remove [--out DIR] OPERATOR...
  --server URL        the apiserver of this node, such as https://10.0.0.1:6443
  --out DIR           where to write (/etc/kubernetes/operators); pods mount their folders from there
  --pki DIR           where the cluster's files are (/etc/kubernetes/pki): ca.crt and ca.key, which sign, and sa.key
  --trust FILE        certificates of the CAs that this cluster trusts (ca.crt of --pki; both while the CA is rotated)
  --days N            how long the client certificates are valid (30); DIR/renew is to run in less than half of that time
  --remove            takes these operators' keys, certificates and manifests away from DIR, and writes nothing
  --image IMAGE       an image that has all operators in it; otherwise each has its own, as its manifest says
  --cluster-cidr CIDR, --service-cluster-ip-range CIDR
                      give each node a range for its pods; without them node-ipam-operator is left out
  --first-port PORT   each serves at a port of its own on 127.0.0.1, from this one on (10300)
  --first-uid UID     each runs as a user of its own, from this one on (1065532000), which owns its files
  --uid UID           all run as this user; the only way for who is not root
  --flag OPERATOR=FLAG
                      a flag more for this operator, such as
                      certificatesigningrequest-signing-operator=--cluster-signing-duration=24h; again for others
  OPERATOR...         these instead of those that a cold cluster needs
writes in DIR:
  OPERATOR/           its kubeconfig, certificates and keys; only its user may read them
  manifests/          the pods, for the kubelet's folder of static pods
  accounts.yaml       their ServiceAccounts and roles, to be applied by an administrator
  others.yaml         all other operators that need no cloud provider, as Deployments, to be applied once pods run
  servers             where each serves, for kubectl operators --servers on this node
  renew               runs this command again, for a timer
TEXT
}
set -euo pipefail
umask 077

fail() {
  echo "static-pods: $*" >&2
  exit 1
}

# What a cold cluster needs.
cold=(
  bootstrap-signer certificatesigningrequest-approving certificatesigningrequest-signing root-ca-certificate-publisher
  serviceaccount serviceaccount-token node-lifecycle daemonset deployment replicaset endpointslice node-ipam
)
# Upstream's controllers in order: an operator's place gives it its port and its user, whichever others there are. The ports
# are those of manifests/components/daemonset.
controllers=(
  bootstrap-signer certificatesigningrequest-approving certificatesigningrequest-cleaner
  certificatesigningrequest-signing cloud-node-lifecycle clusterrole-aggregation cronjob daemonset deployment
  device-taint-eviction disruption endpoints endpointslice endpointslice-mirroring ephemeral-volume garbage-collector
  horizontal-pod-autoscaler job kube-apiserver-serving-clustertrustbundle-publisher legacy-serviceaccount-token-cleaner
  namespace node-ipam node-lifecycle node-route persistentvolume-attach-detach persistentvolume-binder
  persistentvolume-expander persistentvolume-protection persistentvolumeclaim-protection pod-garbage-collector
  podcertificaterequest-cleaner podgroup-protection replicaset replicationcontroller resourceclaim
  resourcepoolstatusrequest resourcequota root-ca-certificate-publisher selinux-warning service-cidr service-lb
  serviceaccount serviceaccount-token statefulset storage-version-migrator storageversion-garbage-collector
  taint-eviction token-cleaner ttl-after-finished ttl validatingadmissionpolicy-status volumeattributesclass-protection
  cloud-node
)

server='' out=/etc/kubernetes/operators pki=/etc/kubernetes/pki trust='' days=30 image='' cluster_cidr='' service_range=''
first_port=10300 first_uid=1065532000 uid='' more_flags=() chosen=() remove=''
again=$(printf '%q ' "$(realpath "$0")" "$@")
while [ $# != 0 ]; do
  case $1 in
    --help | -h)
      usage
      exit
      ;;
    --remove)
      remove=1
      shift
      ;;
    --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --server | --out | --pki | --trust | --days | --image | --cluster-cidr | --service-cluster-ip-range | --first-port | --first-uid | --uid | --flag)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --server) server=$2 ;;
        --out) out=$2 ;;
        --pki) pki=$2 ;;
        --trust) trust=$2 ;;
        --days) days=$2 ;;
        --image) image=$2 ;;
        --cluster-cidr) cluster_cidr=$2 ;;
        --service-cluster-ip-range) service_range=$2 ;;
        --first-port) first_port=$2 ;;
        --first-uid) first_uid=$2 ;;
        --uid) uid=$2 ;;
        --flag) more_flags+=("$2") ;;
      esac
      shift 2
      ;;
    -*) fail "there is no $1 (--help lists what there is)" ;;
    *)
      chosen+=("$1")
      shift
      ;;
  esac
done

# remove OPERATOR: its keys are overwritten first, as far as the disk lets that happen.
remove() {
  [ -d "$out/$1" ] || fail "$out has no $1"
  find "$out/$1" -type f -exec shred --force --remove {} +
  rm -rf "${out:?}/$1" "$out/manifests/$1.yaml"
  if [ -f "$out/servers" ]; then
    grep -v "^$1=" "$out/servers" >"$out/.servers.partial" || true
    chmod 644 "$out/.servers.partial"
    mv "$out/.servers.partial" "$out/servers"
  fi
}

if [ -n "$remove" ]; then
  [ ${#chosen[@]} != 0 ] || fail "--remove says which operators"
  for operator in "${chosen[@]}"; do
    case $operator in
      */* | .* | manifests) fail "there is no operator $operator" ;;
    esac
    remove "$operator"
    echo "static-pods: $out has nothing of $operator any more; what is left:"
    echo "  rm <the kubelet's staticPodPath>/$operator.yaml, and the same on other nodes"
    echo "  kubectl delete --namespace kube-system clusterrolebinding,rolebinding --selector app.kubernetes.io/name=$operator"
    echo "  rm $out/renew, or write it again without $operator"
  done
  exit
fi

for program in openssl kubectl; do
  command -v "$program" >/dev/null || fail "missing: $program"
done
case $server in
  https://?*) ;;
  '') fail "--server says where this node's apiserver is, such as --server https://10.0.0.1:6443" ;;
  *) fail "--server $server: an apiserver's URL begins with https://" ;;
esac
trust=${trust:-$pki/ca.crt}
for file in "$pki/ca.crt" "$pki/ca.key" "$pki/sa.key" "$trust"; do
  [ -r "$file" ] || fail "cannot read $file (--pki says where the cluster's files are)"
done
for number in "$days" "$first_port" "$first_uid" ${uid:+"$uid"}; do
  case $number in
    '' | *[!0-9]*) fail "'$number' is no number" ;;
  esac
done
[ -n "$uid" ] || [ "$(id -u)" = 0 ] || fail "only root can give files to the pods' users (--uid $(id -u) runs all as yours)"
public() { openssl "$@" 2>/dev/null | openssl sha256; }
[ "$(public x509 -in "$pki/ca.crt" -noout -pubkey)" = "$(public pkey -in "$pki/ca.key" -pubout)" ] ||
  fail "$pki/ca.key is not the key of $pki/ca.crt"

manifests=$(cd "$(dirname "$0")/../manifests" && pwd)
if [ ${#chosen[@]} = 0 ]; then
  for name in "${cold[@]}"; do
    if [ "$name" != node-ipam ] || [ -n "$cluster_cidr" ]; then
      chosen+=("$name-operator")
    fi
  done
fi
# place OPERATOR: among upstream's controllers, from 0 on.
place() {
  local i
  for i in "${!controllers[@]}"; do
    if [ "${controllers[i]}-operator" = "$1" ]; then
      echo "$i"
      return
    fi
  done
  return 1
}
for operator in "${chosen[@]}"; do
  { [ -f "$manifests/$operator/kustomization.yaml" ] && place "$operator" >/dev/null; } || fail "there is no operator $operator"
done
for flag in "${more_flags[@]}"; do
  case " ${chosen[*]} " in
    *" ${flag%%=*} "*) ;;
    *) fail "--flag $flag: its first word is none of ${chosen[*]}" ;;
  esac
done

mkdir -p "$out/manifests"
chmod 755 "$out" "$out/manifests"
out=$(cd "$out" && pwd)
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

# What is half written is never seen under its name.
put() {
  local partial
  partial=$(dirname "$1")/.$(basename "$1").partial
  cat >"$partial"
  chmod "$2" "$partial"
  if [ "$(id -u)" = 0 ] && [ -n "${3:-}" ]; then chown "$3:$3" "$partial"; fi
  mv "$partial" "$1"
}

# A ServiceAccount's name may be longer than the 64 characters that X.520 allows a common name. OpenSSL holds to them unless
# told otherwise; Go, and thus an apiserver, never does.
cat >"$work/openssl.cnf" <<'TEXT'
openssl_conf = modules
[modules]
stbl_section = texts
[texts]
CN = min:1, max:253
[req]
distinguished_name = none
[none]
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
TEXT

# certificate OPERATOR: a new key, and a certificate of its ServiceAccount for it, one after the other.
certificate() {
  local groups=/O=system:serviceaccounts/O=system:serviceaccounts:kube-system
  export OPENSSL_CONF=$work/openssl.cnf
  if ! {
    openssl req -config "$work/openssl.cnf" -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key" \
      -subj "$groups/CN=system:serviceaccount:kube-system:$1" -out "$work/request" &&
      openssl x509 -req -in "$work/request" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -days "$days" \
        -set_serial "0x$(openssl rand -hex 16)" -extfile "$work/openssl.cnf" -extensions client -out "$work/certificate"
  } 2>"$work/said"; then
    fail "openssl makes no certificate for $1: $(cat "$work/said")"
  fi
  unset OPENSSL_CONF
  cat "$work/certificate" "$work/key"
}

kubeconfig() {
  cat <<TEXT
apiVersion: v1
kind: Config
clusters:
  - name: cluster
    cluster: {server: "$server", certificate-authority: trust.crt}
users:
  - name: $1
    user: {client-certificate: client.pem, client-key: client.pem}
contexts:
  - name: cluster
    context: {cluster: cluster, user: $1}
current-context: cluster
TEXT
}

# args OPERATOR PORT: its arguments, one a line.
args() {
  local flag files=/etc/kubernetes/operator
  if [ -n "$image" ]; then echo "$1"; fi
  printf '%s\n' --bind-address=127.0.0.1 "--secure-port=$2" "--kubeconfig=$files/kubeconfig"
  case $1 in
    certificatesigningrequest-signing-operator)
      printf '%s\n' "--cluster-signing-cert-file=$files/ca.crt" "--cluster-signing-key-file=$files/ca.key"
      ;;
    serviceaccount-token-operator)
      printf '%s\n' "--service-account-private-key-file=$files/sa.key" "--root-ca-file=$files/trust.crt"
      ;;
    root-ca-certificate-publisher-operator | kube-apiserver-serving-clustertrustbundle-publisher-operator)
      echo "--root-ca-file=$files/trust.crt"
      ;;
    node-ipam-operator)
      printf '%s\n' --allocate-node-cidrs=true ${cluster_cidr:+"--cluster-cidr=$cluster_cidr"} \
        ${service_range:+"--service-cluster-ip-range=$service_range"}
      ;;
  esac
  for flag in "${more_flags[@]}"; do
    if [ "${flag%%=*}" = "$1" ]; then echo "${flag#*=}"; fi
  done
}

# pod OPERATOR PORT UID: the pod that its manifest's Deployment would start, as a static pod of this node.
pod() {
  local arguments
  arguments=$(args "$1" "$2" | sed 's/["\\]/\\&/g; s/.*/"&"/' | paste --serial --delimiters ,)
  mkdir -p "$work/pod"
  cat >"$work/pod/kustomization.yaml" <<TEXT
resources: [$(realpath --relative-to "$(realpath "$work/pod")" "$manifests")/$1]
patches:
  - target: {kind: ServiceAccount|ClusterRole|ClusterRoleBinding|Role|RoleBinding|Service|PodDisruptionBudget|ValidatingAdmissionPolicy|ValidatingAdmissionPolicyBinding}
    patch: |-
      \$patch: delete
      apiVersion: any
      kind: any
      metadata: {name: any}
  - target: {kind: Deployment}
    options: {allowKindChange: true}
    patch: |-
      - {op: replace, path: /apiVersion, value: v1}
      - {op: replace, path: /kind, value: Pod}
      - {op: move, from: /spec/template/spec/containers, path: /containers}
      - {op: move, from: /spec/template/spec/securityContext, path: /securityContext}
      - op: replace
        path: /spec
        value:
          hostNetwork: true
          enableServiceLinks: false
          priorityClassName: system-node-critical
          tolerations: [{operator: Exists, effect: NoExecute}]
          volumes:
            - {name: files, hostPath: {path: "$out/$1", type: Directory}}
      - {op: move, from: /containers, path: /spec/containers}
      - {op: move, from: /securityContext, path: /spec/securityContext}
      - {op: add, path: /spec/securityContext/runAsUser, value: $3}
      - {op: add, path: /spec/securityContext/runAsGroup, value: $3}
      - {op: add, path: /spec/containers/0/args, value: [$arguments]}
      - {op: add, path: /spec/containers/0/ports, value: [{name: https, containerPort: $2, hostPort: $2, hostIP: 127.0.0.1}]}
      - {op: add, path: /spec/containers/0/livenessProbe/httpGet/host, value: 127.0.0.1}
      - {op: add, path: /spec/containers/0/readinessProbe/httpGet/host, value: 127.0.0.1}
      - {op: add, path: /spec/containers/0/volumeMounts, value: [{name: files, mountPath: /etc/kubernetes/operator, readOnly: true}]}
TEXT
  if [ -n "$image" ]; then
    echo "      - {op: add, path: /spec/containers/0/image, value: \"$image\"}" >>"$work/pod/kustomization.yaml"
  fi
  kubectl kustomize "$work/pod"
}

# overlay OPERATOR...: these, but for what the kustomization on standard input takes away or adds.
overlay() {
  local operator folder
  mkdir -p "$work/overlay"
  folder=$(realpath --relative-to "$(realpath "$work/overlay")" "$manifests")
  {
    echo 'resources:'
    for operator in "$@"; do echo "  - $folder/$operator"; done
    cat
  } >"$work/overlay/kustomization.yaml"
  kubectl kustomize "$work/overlay"
}

servers=()
for operator in "${chosen[@]}"; do
  i=$(place "$operator")
  port=$((first_port + i)) user=${uid:-$((first_uid + i))}
  folder=$out/$operator
  servers+=("$operator=https://127.0.0.1:$port")
  mkdir -p "$folder"
  certificate "$operator" >"$work/client.pem"
  put "$folder/client.pem" 600 "$user" <"$work/client.pem"
  put "$folder/trust.crt" 600 "$user" <"$trust"
  kubeconfig "$operator" | put "$folder/kubeconfig" 600 "$user"
  # Each key is where it is used, and nowhere else.
  case $operator in
    certificatesigningrequest-signing-operator)
      put "$folder/ca.crt" 600 "$user" <"$pki/ca.crt"
      put "$folder/ca.key" 600 "$user" <"$pki/ca.key"
      ;;
    serviceaccount-token-operator) put "$folder/sa.key" 600 "$user" <"$pki/sa.key" ;;
  esac
  chmod 700 "$folder"
  if [ "$(id -u)" = 0 ]; then chown "$user:$user" "$folder"; fi
  pod "$operator" "$port" "$user" >"$work/pod.yaml"
  put "$out/manifests/$operator.yaml" 644 <"$work/pod.yaml"
done

# What runs no pod. kustomize gives a Lease's name to its role by the Deployment, so that this goes only afterwards.
overlay "${chosen[@]}" </dev/null | awk '
  /^---$/ { if (!runs) printf "%s", text; text = ""; runs = 0 }
  /^kind: (Deployment|Service|PodDisruptionBudget)$/ { runs = 1 }
  { text = text $0 "\n" }
  END { if (!runs) printf "%s", text }' >"$work/accounts.yaml"
put "$out/accounts.yaml" 644 <"$work/accounts.yaml"

printf '%s\n' "${servers[@]}" | put "$out/servers" 644
# A timer may have another PATH.
printf '#!/usr/bin/env bash\n# New certificates for the static pods. Written by static-pods.sh.\nexport PATH=%q\ncd %q && exec %s>/dev/null\n' \
  "$PATH" "$PWD" "$again" |
  put "$out/renew" 700

mapfile -t without_cloud < <(sed -n 's/^ *- //p' "$manifests/kustomization.yaml")
others=()
for operator in "${without_cloud[@]}"; do
  case " ${chosen[*]} " in
    *" $operator "*) ;;
    *) others+=("$operator") ;;
  esac
done
more=''
if [ -n "$image" ]; then
  folder=$(realpath --relative-to "$(realpath "$work")" "$manifests")
  more="components: [../$folder/components/one-image]
images: [{name: operators.local/operators, newName: \"${image%:*}\", newTag: \"${image##*:}\"}]"
fi
: >"$work/others.yaml"
if [ ${#others[@]} != 0 ]; then
  overlay "${others[@]}" <<<"$more" >"$work/others.yaml"
fi
put "$out/others.yaml" 644 <"$work/others.yaml"

echo "static-pods: $out has ${#chosen[@]} operators; what is next:"
echo "  kubectl apply --filename $out/accounts.yaml"
echo "  cp $out/manifests/*.yaml <the kubelet's staticPodPath, such as /etc/kubernetes/manifests>"
echo "  kubectl apply --filename $out/others.yaml"
echo "  ln --symbolic $out/renew /etc/cron.weekly/kubernetes-operators, or another timer: certificates end in $days days"
