#!/usr/bin/env bash
# A cluster from an empty etcd in which no kube-controller-manager ever runs, on a real node of this machine: etcd,
# kube-apiserver, kube-scheduler, and a kubelet that joins by a bootstrap token and itself starts, as static pods, the
# operators that approve and sign its certificates. Shows that certificates are signed and renewed, that tokens of Secrets
# are good, that pods have their CA, that logs come over a signed serving certificate, and how the CA is replaced.
#   cold-cluster.sh    as root, after make images PROGRAMS=operators
# $REALNODE_HOME (~/.cache/realnode) has bin/ (etcd, kube-apiserver, kube-scheduler, kube-proxy, kubelet, containerd,
# containerd-shim-runc-v2, ctr; all but kube-controller-manager) and images/ (a pause image and nginx:1.9.1). Needs besides
# Debian's runc, containernetworking-plugins, iptables, conntrack, and kubectl, openssl, curl, jq.
set -euo pipefail
cd "$(dirname "$0")/.."
home=${REALNODE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/realnode}
run=$home/cold
address=10.244.0.1
server=https://$address:6443
node=cold-node
token_id=c01dc0 token_secret=0123456789abcdef
image=operators.local/operators:v0.1.0
# So short that a kubelet renews its certificate within two minutes: it begins five minutes before it is signed, and a
# kubelet renews at seven to nine tenths.
duration=3m
unset REALNODE

# shellcheck source=scripts/steps.sh
. scripts/steps.sh
# shellcheck source=scripts/containerd.sh
. scripts/containerd.sh

started=()
begin() {
  local name=$1
  shift
  (cd "$run" && exec setsid "$@" >"$run/$name.log" 2>&1) &
  started+=("$name:$!")
}
# end PART [SIGNAL]
end() {
  local part pid
  for part in "${started[@]}"; do
    [ "${part%%:*}" = "$1" ] || continue
    pid=${part#*:}
    kill -s "${2:-TERM}" "$pid" 2>/dev/null || true
    for _ in $(seq 60); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.2
    done
    kill -9 "$pid" 2>/dev/null || true
  done
}
# Containers and their shims outlive containerd; our shims are those that talk to ours.
end_containers() {
  local pid
  for pid in $(ctr --address "$run/ctd/c.sock" --namespace k8s.io tasks list --quiet 2>/dev/null || true); do
    ctr --address "$run/ctd/c.sock" --namespace k8s.io tasks kill --signal KILL "$pid" >/dev/null 2>&1 || true
  done
  sleep 1
  for pid in $(pgrep -x containerd-shim || true); do
    if grep -qz "^$run/ctd/c.sock" "/proc/$pid/cmdline" 2>/dev/null; then kill "$pid" || true; fi
  done
}
leave() {
  local status=$1 part
  trap - EXIT INT TERM
  if [ "$status" != 0 ]; then
    kubectl get pods --all-namespaces --output wide || true
    kubectl get certificatesigningrequests || true
    for part in apiserver kubelet; do
      echo "== $part"
      tail -n 15 "$run/$part.log" || true
    done
    for log in "$run"/pods/kube-system_*/operator/*.log; do
      echo "== $log"
      tail -n 5 "$log" || true
    done
  fi
  [ -z "${approver:-}" ] || kill "$approver" 2>/dev/null || true
  end proxy
  kube-proxy --cleanup >/dev/null 2>&1 || true
  end kubelet
  end_containers
  for part in containerd scheduler apiserver etcd; do end "$part"; done
  awk -v run="$run" 'index($2, run) == 1 { print $2 }' /proc/mounts | sort --reverse | xargs --no-run-if-empty --max-args 1 umount --lazy
  exit "$status"
}

[ "$(id -u)" = 0 ] || fail "a node is started by root"
for program in kubectl openssl curl jq runc iptables conntrack; do
  command -v "$program" >/dev/null || fail "missing: $program"
done
for program in etcd kube-apiserver kube-scheduler kube-proxy kubelet containerd containerd-shim-runc-v2 ctr; do
  [ -x "$home/bin/$program" ] || fail "there is no $home/bin/$program (REALNODE_HOME says where the programs are)"
done
[ -f dist/images/operators.tar ] || fail "there is no dist/images/operators.tar: make images PROGRAMS=operators"
# All but this one: what is not there cannot run. A folder of links keeps it from the PATH.
rm -rf "$run"
mkdir -p "$run/bin" "$run/pki" "$run/static" "$run/cni" "$run/ctd"
for program in etcd kube-apiserver kube-scheduler kube-proxy kubelet containerd containerd-shim-runc-v2 ctr; do
  ln -s "$home/bin/$program" "$run/bin/$program"
done
export PATH=$run/bin:$PATH KUBECONFIG=$run/admin.kubeconfig
trap 'leave $?' EXIT
trap 'exit 1' INT TERM

# What an administrator, or kubeadm, makes before there is a cluster.
authority() {
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$run/pki/$1.key" -out "$run/pki/$1.crt" -subj "/CN=$2" -days 30 2>/dev/null
}
# certificate AUTHORITY NAME SUBJECT
certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$run/pki/$2.key" -out "$run/pki/$2.csr" -subj "$3" 2>/dev/null
  openssl x509 -req -in "$run/pki/$2.csr" -CA "$run/pki/$1.crt" -CAkey "$run/pki/$1.key" -out "$run/pki/$2.crt" -days 30 \
    -set_serial "0x$(openssl rand -hex 16)" -extfile <(
      echo "subjectAltName=IP:127.0.0.1,IP:$address,IP:10.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
      echo "extendedKeyUsage=serverAuth,clientAuth"
    ) 2>/dev/null
}
kubeconfig() {
  local file=--kubeconfig=$run/$1.kubeconfig
  shift
  {
    kubectl config "$file" set-cluster cold --server "$server" --certificate-authority "$run/pki/trust.crt"
    kubectl config "$file" set-credentials user "$@"
    kubectl config "$file" set-context cold --cluster cold --user user
    kubectl config "$file" use-context cold
  } >/dev/null
}
with_certificate() {
  kubeconfig "$1" --client-certificate "$run/pki/$1.crt" --client-key "$run/pki/$1.key" --embed-certs=true
}

apiserver() {
  begin apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --bind-address 0.0.0.0 --advertise-address "$address" \
    --secure-port 6443 --tls-cert-file pki/apiserver.crt --tls-private-key-file pki/apiserver.key \
    --client-ca-file pki/trust.crt --kubelet-certificate-authority pki/trust.crt \
    --kubelet-client-certificate pki/admin.crt --kubelet-client-key pki/admin.key \
    --kubelet-preferred-address-types InternalIP --enable-bootstrap-token-auth \
    --service-account-key-file pki/sa.pub --service-account-signing-key-file pki/sa.key \
    --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.0.0.0/16 \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged
  within 60 kubectl get --raw /readyz >"$run/ready" 2>&1
}

static_pods() {
  scripts/static-pods.sh --server "$server" --out "$run/operators" --pki "$run/signer" --trust "$run/pki/trust.crt" \
    --image "$image" --cluster-cidr 10.244.0.0/16 --service-cluster-ip-range 10.0.0.0/16 \
    --flag "certificatesigningrequest-signing-operator=--cluster-signing-duration=$duration"
}
# signs_with AUTHORITY: the folder from which static-pods.sh takes what signs.
signs_with() {
  mkdir -p "$run/signer"
  cp "$run/pki/$1.crt" "$run/signer/ca.crt"
  cp "$run/pki/$1.key" "$run/signer/ca.key"
  cp "$run/pki/sa.key" "$run/signer/sa.key"
}

ip link show cni0 >/dev/null 2>&1 || ip link add cni0 type bridge
ip address replace "$address/24" dev cni0
ip link set cni0 up
authority old kubernetes
cp "$run/pki/old.crt" "$run/pki/trust.crt"
openssl genrsa -out "$run/pki/sa.key" 2048 2>/dev/null
openssl rsa -in "$run/pki/sa.key" -pubout -out "$run/pki/sa.pub" 2>/dev/null
certificate old apiserver /CN=kube-apiserver
certificate old admin /O=system:masters/CN=admin
certificate old scheduler /CN=system:kube-scheduler
with_certificate admin
with_certificate scheduler

begin etcd etcd --data-dir etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync --log-level warn
apiserver
scheduler() { begin scheduler kube-scheduler --kubeconfig scheduler.kubeconfig --leader-elect=false; }
scheduler
step "etcd was empty; an apiserver and a scheduler run, and nothing else"

signs_with old
static_pods >/dev/null
kubectl apply --filename "$run/operators/accounts.yaml" >/dev/null
# What kubeadm init lays down for those who join.
cluster_info() {
  rm -f "$run/cluster-info"
  kubectl config --kubeconfig="$run/cluster-info" set-cluster cold --server "$server" --certificate-authority "$run/pki/trust.crt" --embed-certs=true >/dev/null
}
cluster_info
kubectl --namespace kube-public create configmap cluster-info --from-file "kubeconfig=$run/cluster-info" >/dev/null
kubectl apply --filename - >/dev/null <<YAML
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-$token_id, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: $token_id
  token-secret: $token_secret
  usage-bootstrap-authentication: "true"
  usage-bootstrap-signing: "true"
  auth-extra-groups: system:bootstrappers:cold
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cluster-info, namespace: kube-public}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [cluster-info], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cluster-info, namespace: kube-public}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cluster-info}
subjects: [{kind: User, name: "system:anonymous", apiGroup: rbac.authorization.k8s.io}]
YAML
binding() { kubectl create clusterrolebinding "$1" --clusterrole "$2" --group "$3" >/dev/null; }
binding bootstrappers-ask system:node-bootstrapper system:bootstrappers:cold
binding bootstrappers-are-approved system:certificates.k8s.io:certificatesigningrequests:nodeclient system:bootstrappers:cold
binding nodes-are-renewed system:certificates.k8s.io:certificatesigningrequests:selfnodeclient system:nodes

containerd_files "$run" pods 10.244.0.0/24
containerd_answers() { ctr --address "$run/ctd/c.sock" version >/dev/null 2>&1; }
begin containerd containerd --config ctd/config.toml
within 60 containerd_answers
sleep 2
for archive in "$home"/images/*.tar dist/images/operators.tar; do
  ctr --address "$run/ctd/c.sock" --namespace k8s.io images import "$archive" >/dev/null
done

kubelet_file "$run" "authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $run/pki/trust.crt}}" \
  'authorization: {mode: Webhook}' \
  "podLogsDir: $run/pods" \
  "staticPodPath: $run/static" \
  'rotateCertificates: true' \
  'serverTLSBootstrap: true'
kubeconfig bootstrap --token "$token_id.$token_secret"
kubelet() {
  begin kubelet kubelet --config kubelet.yaml --bootstrap-kubeconfig bootstrap.kubeconfig --kubeconfig kubelet.kubeconfig \
    --cert-dir "$run/kubelet-pki" --hostname-override "$node" --root-dir "$run/kubelet" --node-ip "$address"
}
cp "$run"/operators/manifests/*.yaml "$run/static"
kubelet

# requests SIGNER CONDITION: those to this signer of which the condition is true.
requests() { kubectl get certificatesigningrequests --output json | jq --raw-output --arg signer "kubernetes.io/$1" "[.items[] | select(.spec.signerName == \$signer) | select($2)] | .[].metadata.name"; }
first='.status.certificate != null and (.spec.username | startswith("system:bootstrap:"))'
client_issued() { [ -n "$(requests kube-apiserver-client-kubelet "$first" 2>/dev/null)" ]; }
within 120 client_issued
request=$(requests kube-apiserver-client-kubelet "$first" | head -1)
kubectl get certificatesigningrequest "$request" --output 'jsonpath={.spec.username}{" "}{.status.conditions[*].type}{" "}{.status.conditions[*].reason}{"\n"}' >"$run/first"
grep -q "^system:bootstrap:$token_id Approved AutoApproved$" "$run/first" || fail "the first request is $(cat "$run/first")"
step "the kubelet, by a bootstrap token, got its certificate from static pods of its own: $(cat "$run/first")"

node_is_ready() { kubectl wait --for condition=Ready "node/$node" --timeout 1s >/dev/null 2>&1; }
within 120 node_is_ready
untainted() { [ -z "$(kubectl get node "$node" --output 'jsonpath={.spec.taints}')" ]; }
within 60 untainted
[ -n "$(kubectl get node "$node" --output 'jsonpath={.spec.podCIDR}')" ] || fail "the node has no range for its pods"
step "the node is ready, has no taint, and has a range for its pods"

# As kubeadm join does: of a server that is not trusted yet the text is taken whose signature is of the token's secret.
encode() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
discovered() {
  local text signature
  curl --silent --insecure "$server/api/v1/namespaces/kube-public/configmaps/cluster-info" >"$run/discovered"
  text=$(jq --join-output '.data.kubeconfig' "$run/discovered" | encode)
  signature=$(jq --raw-output ".data[\"jws-kubeconfig-$token_id\"]" "$run/discovered")
  [ "${signature##*.}" = "$(printf '%s.%s' "${signature%%.*}" "$text" | openssl dgst -sha256 -hmac "$token_secret" -binary | encode)" ]
}
within 30 discovered
step "anonymous, and by its token alone, a node finds the cluster's CA"

# Nobody approves serving certificates by himself: here it is a loop.
pending() { requests kubelet-serving '.status.conditions == null' 2>/dev/null; }
has_pending() { [ -n "$(pending)" ]; }
within 60 has_pending
some_pod=$(system get pods --selector app.kubernetes.io/name=deployment-operator --output 'jsonpath={.items[0].metadata.name}')
if system logs "$some_pod" >"$run/logs" 2>&1; then fail "logs came from a kubelet without a signed certificate"; fi
approve() {
  while true; do
    for request in $(pending); do kubectl certificate approve "$request" >/dev/null 2>&1 || true; done
    sleep 2
  done
}
approve &
approver=$!
logs_come() { system logs "$some_pod" >"$run/logs" 2>&1 && [ -s "$run/logs" ]; }
within 60 logs_come
issuer=$(openssl s_client -connect "$address:10250" -CAfile "$run/pki/trust.crt" -verify_return_error </dev/null 2>/dev/null | openssl x509 -noout -issuer -subject | paste --serial --delimiters ' ')
step "its serving certificate was signed once approved, and only then logs come: $issuer"

kubectl create deployment web --image nginx:1.9.1 --replicas 3 >/dev/null
kubectl rollout status deployment/web --timeout 120s >/dev/null
kubectl expose deployment web --port 80 >/dev/null
slice_ready() { [ "$(kubectl get endpointslices --selector kubernetes.io/service-name=web --output json | jq '[.items[].endpoints[]? | select(.conditions.ready)] | length')" = 3 ]; }
within 30 slice_ready
web=$(kubectl get pods --selector app=web --output 'jsonpath={.items[0].metadata.name}')
pod_ca() { cat "$run/kubelet/pods/$(kubectl get pod "$web" --output 'jsonpath={.metadata.uid}')"/volumes/kubernetes.io~projected/*/ca.crt; }
pod_ca | cmp - "$run/pki/trust.crt" || fail "the pod has another CA"
kubectl logs "$web" >/dev/null
step "a Deployment rolled out, its Service has endpoints, and its pods have the CA"

kubectl apply --filename - >/dev/null <<'YAML'
apiVersion: v1
kind: Secret
metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}
type: kubernetes.io/service-account-token
YAML
secret() { kubectl get secret token --output "jsonpath={.data.$1}" | base64 --decode; }
who() { curl --silent --fail --cacert <(secret 'ca\.crt') --header "Authorization: Bearer $(secret token)" --header 'Content-Type: application/json' \
  --data '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}' "$server/apis/authentication.k8s.io/v1/selfsubjectreviews" | jq --raw-output .status.userInfo.username; }
token_is_good() { [ "$(who)" = system:serviceaccount:default:default ]; }
within 30 token_is_good
step "the token of a Secret is good, and so is the CA beside it"

certificate_end() { openssl x509 -in "$run/kubelet-pki/kubelet-client-current.pem" -noout -enddate; }
first_end=$(certificate_end)
renewed() { [ "$(certificate_end)" != "$first_end" ]; }
within 240 renewed
requester=$(kubectl get certificatesigningrequests --output json | jq --raw-output '[.items[] | select(.spec.signerName == "kubernetes.io/kube-apiserver-client-kubelet")] | sort_by(.metadata.creationTimestamp) | last | .spec.username')
[ "$requester" = "system:node:$node" ] || fail "the renewal was asked for by $requester"
step "the kubelet renewed its certificate: $first_end, now $(certificate_end)"

cat >"$run/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $run/admin.kubeconfig}
clusterCIDR: 10.244.0.0/16
mode: iptables
hostnameOverride: $node
conntrack: {maxPerCore: 0}
YAML
begin proxy kube-proxy --config proxy.yaml
kubectl apply --filename "$run/operators/others.yaml" >/dev/null
mapfile -t without_cloud < <(sed -n 's/^ *- //p' manifests/kustomization.yaml)
led() {
  local operator
  for operator in "${without_cloud[@]}"; do
    [ -n "$(system get lease "$operator" --ignore-not-found --output 'jsonpath={.spec.holderIdentity}')" ] || return 1
  done
}
within 180 led
step "all other operators run as Deployments, and each Lease is held"

owner_of() { stat --format '%a %u' "$run/operators/$1/$2"; }
[ "$(owner_of certificatesigningrequest-signing-operator ca.key)" = '600 1065532003' ] || fail "the CA's key can be read"
found=$(find "$run/operators" -name ca.key -o -name sa.key | sort | sed "s|$run/operators/||" | paste --serial --delimiters ' ')
[ "$found" = 'certificatesigningrequest-signing-operator/ca.key serviceaccount-token-operator/sa.key' ] || fail "keys are in $found"
others=$(kubectl get leases,pods --all-namespaces --output name | grep -c controller-manager || true)
wrote=$(kubectl get nodes,pods,configmaps,secrets,serviceaccounts,csr,endpointslices,namespaces --all-namespaces --show-managed-fields --output json | jq --raw-output '[.items[].metadata.managedFields[]?.manager] | unique | .[]' | paste --serial --delimiters ' ')
case "$others $wrote" in
  "0 "*controller-manager* | [1-9]*) fail "something of kube-controller-manager: $others $wrote" ;;
esac
step "nothing of kube-controller-manager is there; who wrote: $wrote"

# The CA is replaced, in the steps of docs/ca-rotation.md.
authority new kubernetes-2
cat "$run/pki/old.crt" "$run/pki/new.crt" >"$run/pki/trust.crt"
published() { kubectl --namespace "$1" get configmap kube-root-ca.crt --output 'jsonpath={.data.ca\.crt}' | cmp --silent - "$run/pki/trust.crt"; }
static_pods >/dev/null
within 120 published default
within 120 published kube-system
has_ca() { secret 'ca\.crt' | cmp --silent - "$run/pki/trust.crt"; }
within 120 has_ca
pod_has_ca() { pod_ca | cmp --silent - "$run/pki/trust.crt"; }
within 180 pod_has_ca
step "rotation: every namespace, token and pod has the old CA and the new one"
cluster_info
kubectl --namespace kube-public patch configmap cluster-info --type merge \
  --patch "$(jq --null-input --rawfile text "$run/cluster-info" '{data: {kubeconfig: $text}}')" >/dev/null
within 30 discovered
# An apiserver that is asked to end waits for its watches, and for longer than a Lease lasts.
restart() {
  if [ "$1" = apiserver ]; then end apiserver KILL; else end "$1"; fi
  "$1"
}
for part in apiserver scheduler kubelet; do restart "$part"; done
# So seldom an operator looks at the file of its CA, and nothing shows when one that is idle has.
sleep 60
signs_with new
static_pods >/dev/null
certificate new apiserver /CN=kube-apiserver
certificate new admin /O=system:masters/CN=admin
certificate new scheduler /CN=system:kube-scheduler
with_certificate admin
with_certificate scheduler
for part in apiserver scheduler; do restart "$part"; done
issued_by_new() { openssl x509 -in "$run/kubelet-pki/kubelet-$1-current.pem" -noout -issuer | grep -q 'kubernetes-2'; }
within 300 issued_by_new client
within 300 issued_by_new server
step "rotation: the new CA has signed the apiserver's certificate and both of the kubelet's"
cp "$run/pki/new.crt" "$run/pki/trust.crt"
static_pods >/dev/null
within 120 published default
within 120 has_ca
for part in apiserver scheduler kubelet; do restart "$part"; done
within 60 logs_come
kubectl create deployment after --image nginx:1.9.1 >/dev/null
kubectl rollout status deployment/after --timeout 120s >/dev/null
within 60 token_is_good
if grep --files-with-matches 'invalid peer certificate' "$run"/pods/kube-system_*/operator/*.log; then
  fail "operators did not trust the new CA in time"
fi
# One ends whose Lease could not be renewed while the only apiserver was away.
restarts=$(system get pods --output json | jq '[.items[] | select(.metadata.annotations["kubernetes.io/config.source"] == "file") | .status.containerStatuses[]?.restartCount] | add')
step "rotation: only the new CA is trusted, and the cluster works; restarts of static pods: $restarts"

printf '\n%-60s %10s %10s\n' operator 'RSS KiB' 'anon KiB'
for process in $(pgrep -x operator); do
  awk -v name="$(tr '\0' '\n' <"/proc/$process/cmdline" | sed -n 2p)" '/^VmRSS/ { rss = $2 } /^RssAnon/ { anon = $2 } END { printf "%-60s %10d %10d\n", name, rss, anon }' "/proc/$process/status"
done | sort
step "all seen"
