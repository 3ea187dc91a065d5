# Sourced by scripts that show something step by step on a cluster: the steps, waiting, and how one fails.
# shellcheck shell=bash

step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() {
  echo "failed: $*" >&2
  exit 1
}

# within SECONDS COMMAND...: until the command succeeds.
within() {
  local limit=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$limit" ] || fail "$*"
    sleep 0.2
  done
}

system() { kubectl --namespace kube-system "$@"; }

# await_api VERSION.GROUP: until an aggregated API answers.
await_api() { kubectl wait --for condition=Available "apiservice/$1" --timeout 120s >/dev/null; }

# "${on_host[@]}" NAME COMMAND...: runs the command on a host of this name, the one that pods in the host's network have too.
# shellcheck disable=SC2016,SC2034
on_host=(unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"')
