# Sourced by who shows the operators on a real node: starts one without the operators' controllers in its
# kube-controller-manager, and installs the operators there.
# $REALNODE is a program that runs such a node, node-real, on this machine: `up [flags of kube-controller-manager]` prints an
# export of KUBECONFIG, `load FILE` imports an image, `down` stops everything; it has images nginx:1.7.9, nginx:1.9.1,
# nginx:1.16.1.
# $APISERVER_EXTRA has more flags of the apiserver for it.
# A script that also sources csi.sh gets storage on the node.
# shellcheck shell=bash

realnode=${REALNODE:?names the program that runs a node}
# It may have another meaning to that program.
unset REALNODE

# shellcheck source=scripts/steps.sh
. scripts/steps.sh

holder() { system get lease "$1" --ignore-not-found --output 'jsonpath={.spec.holderIdentity}'; }
held_by_another() { local now; now=$(holder "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }

# finish STATUS: shows what there is if it failed, and stops the node.
finish() {
  local status=$1
  if [ "$status" != 0 ]; then
    kubectl get pods --all-namespaces --output wide || true
    for operator in "${operators[@]}"; do
      system logs --selector "app.kubernetes.io/name=$operator" --prefix --tail 20 || true
    done
  fi
  [ -z "${kubelet:-}" ] || kill "$kubelet" || true
  "$realnode" down
  [ -z "${storage_begun:-}" ] || end_storage
  exit "$status"
}

# end_kubelet: kills the node's kubelet, the only one of this machine. What it was started with is in kubelet_command.
end_kubelet() {
  local found
  # While it starts a program there is a second process of its name.
  within 10 one_kubelet
  found=$(pgrep --oldest -x kubelet)
  mapfile -d '' -t kubelet_command <"/proc/$found/cmdline"
  kubelet_folder=$(readlink "/proc/$found/cwd")
  kubelet_program=$(readlink "/proc/$found/exe")
  kill -9 "$found"
}
one_kubelet() { [ "$(pgrep --count -x kubelet)" = 1 ]; }
begin_kubelet() {
  (cd "$kubelet_folder" && exec setsid "$kubelet_program" "${kubelet_command[@]:1}" >>kubelet.log 2>&1) &
  kubelet=$!
  # The script kills it on purpose; bash must not report that.
  disown "$kubelet"
}

# gate_scheduler: starts the node's scheduler again, with $GATES.
gate_scheduler() {
  local parts command found program
  parts=$(dirname "$KUBECONFIG")
  found=$(cat "$parts/sched.pid")
  mapfile -d '' -t command <"/proc/$found/cmdline"
  program=$(readlink "/proc/$found/exe")
  kill "$found"
  (cd "$parts" && exec setsid "$program" "${command[@]:1}" --feature-gates="$GATES" >>sched.log 2>&1) &
  echo $! >"$parts/sched.pid"
}

# install_operator OPERATOR: from its own image, or with $ONE_IMAGE from the one that has all.
install_operator() {
  if [ -z "${ONE_IMAGE:-}" ]; then
    "$realnode" load "dist/images/$1.tar" >/dev/null
    kubectl apply -k "manifests/$1" >/dev/null
    return
  fi
  mkdir -p dist/one-image
  printf 'resources: [../../manifests/%s]\ncomponents: [../../manifests/components/one-image]\n' "$1" \
    >dist/one-image/kustomization.yaml
  kubectl apply -k dist/one-image >/dev/null
}

# up CONTROLLERS OPERATOR...: a node for these operators, whose kube-controller-manager runs --controllers=CONTROLLERS; it is
# stopped when the script ends.
up() {
  local controllers=$1 exported
  shift
  operators=("$@")
  trap 'finish $?' EXIT
  exported=$("${on_host[@]}" node-real "$realnode" up "--controllers=$controllers" | grep '^export KUBECONFIG=') ||
    fail "$realnode started no node"
  eval "$exported"
  [ -z "${csi_driver:-}" ] || begin_storage
  step "a node is up, its kube-controller-manager runs --controllers=$controllers"
}

# start OPERATOR...: a node where these work.
start() {
  local controllers='*' operator
  for operator in "$@"; do
    controllers+=",-${operator%-operator}-controller"
  done
  up "$controllers" "$@"

  if [ -n "${ONE_IMAGE:-}" ]; then
    "$realnode" load dist/images/operators.tar >/dev/null
  fi
  for operator in "${operators[@]}"; do
    install_operator "$operator"
  done
  kubectl apply -k manifests/metrics-reader >/dev/null
  scripts/bootstrap.sh
  for operator in "${operators[@]}"; do
    within 30 held_by_another "$operator" ''
  done
  step "the operators run, and each Lease is held"
}

# end_controller_manager: the node's own, which is no pod.
end_controller_manager() { kill "$(cat "$(dirname "$KUBECONFIG")/kcm.pid")"; }

# run_static_pod IMAGE PROGRAM [FLAG...]: kubeadm's static pod of kube-controller-manager with only image and program changed,
# and with these flags, and a kubelet that reads static pods. Files are in a folder of the node's, and the range of Services
# is that of this node.
run_static_pod() {
  local manifest=all-in-one/src/command_line/tests/kubeadm.yaml parts command
  printf -v command '\\n    - %s' "${@:2}"
  parts=$(dirname "$KUBECONFIG")
  mkdir -p "$parts/kubernetes/pki" "$parts/static-pods"
  cp "$parts"/pki/{ca.crt,ca.key,sa.key} "$parts/kubernetes/pki/"
  cp "$parts/pki/ca.crt" "$parts/kubernetes/pki/front-proxy-ca.crt"
  cp "$parts/kcm.kubeconfig" "$parts/kubernetes/controller-manager.conf"
  sed -e "s#/etc/kubernetes#$parts/kubernetes#" -e 's#10.96.0.0/12#10.0.0.0/16#' \
    -e "s#^    - kube-controller-manager\$#${command#\\n}#" -e "s#image: .*#image: $1#" \
    "$manifest" >"$parts/static-pods/kube-controller-manager.yaml"
  case " ${kubelet_command[*]:-} " in
  *--pod-manifest-path=*) ;;
  *)
    end_kubelet
    kubelet_command+=("--pod-manifest-path=$parts/static-pods")
    begin_kubelet
    ;;
  esac
  within 60 held_by_another kube-controller-manager ''
}
# end_static_pod: takes it away again.
end_static_pod() {
  rm "$(dirname "$KUBECONFIG")/static-pods/kube-controller-manager.yaml"
  within 60 no_static_pod
}
no_static_pod() { [ -z "$(system get pods --selector component=kube-controller-manager --output name)" ]; }

# image_of_all: the name of the image that has all operators.
image_of_all() { sed -n 's/^ *image: //p' manifests/one-process/static-pod.yaml; }

# start_one_process [FLAG...]: a node where one process with these flags is in the place of kube-controller-manager.
start_one_process() {
  up '*'
  end_controller_manager
  "$realnode" load dist/images/operators.tar >/dev/null
  kubectl apply -k manifests/one-process/accounts >/dev/null
  run_static_pod "$(image_of_all)" /operator "$@"
  step "one process holds the Lease of kube-controller-manager"
}

# start_shadows OPERATOR...: a node where kube-controller-manager does everything, and these run beside it as shadows, from
# the image that has all.
start_shadows() {
  local operator
  up '*' "$@"
  "$realnode" load dist/images/operators.tar >/dev/null
  mkdir -p dist/shadow
  for operator in "${operators[@]}"; do
    printf 'resources: [../../manifests/%s]\ncomponents: [../../manifests/components/one-image, ../../manifests/components/shadow]\n' \
      "$operator" >dist/shadow/kustomization.yaml
    kubectl apply -k dist/shadow >/dev/null
  done
  kubectl apply -k manifests/viewer >/dev/null
  for operator in "${operators[@]}"; do
    system rollout status "deployment/$operator" --timeout 120s >/dev/null
  done
  step "the shadows run"
}
