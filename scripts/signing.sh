#!/usr/bin/env bash
# Signs a small release with a throwaway key, and requires that each change of it is refused.
#   signing.sh COSIGN
set -euo pipefail
cd "$(dirname "$0")/.."

cosign=$(realpath "${1:?names cosign}")
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
export COSIGN_PASSWORD=throwaway
for owner in ours theirs; do
  (cd "$work" && "$cosign" generate-key-pair --output-key-prefix "$owner")
done

mkdir -p "$work/signed/images"
echo program >"$work/signed/programs.tar.gz"
echo image >"$work/signed/images/ttl-operator.tar"
(cd "$work/signed" && sha256sum programs.tar.gz images/ttl-operator.tar >SHA256SUMS)
scripts/sign.sh "$cosign" "$work/ours.key" "$work/signed"
scripts/verify.sh "$cosign" "$work/ours.pub" "$work/signed"

# refused EXPECTED CHANGE...: after the change, verifying fails with this one line.
refused() {
  local expected=$1 said
  shift
  rm -rf "$work/changed"
  cp --recursive "$work/signed" "$work/changed"
  (cd "$work/changed" && "$@")
  if said=$(scripts/verify.sh "$cosign" "${key:-$work/ours.pub}" "$work/changed" 2>&1); then
    echo "accepted, though: $expected" >&2
    exit 1
  fi
  said=${said//$work\//}
  # shellcheck disable=SC2053
  if [[ $said == *$'\n'* || $said != $expected ]]; then
    printf 'expected: %s\nsaid: %s\n' "$expected" "$said" >&2
    exit 1
  fi
  echo "refused: $said"
}
append() { echo more >>"$1"; }

refused 'images/ttl-operator.tar: changed' append images/ttl-operator.tar
refused 'programs.tar.gz: missing' rm programs.tar.gz
refused 'images/added.tar: not in SHA256SUMS' append images/added.tar
refused 'images/SHA256SUMS: not in SHA256SUMS' append images/SHA256SUMS
refused 'linked: not in SHA256SUMS' ln --symbolic programs.tar.gz linked
refused 'changed: SHA256SUMS.sigstore.json is missing' rm SHA256SUMS.sigstore.json
refused 'changed: SHA256SUMS does not verify with ours.pub: *' append SHA256SUMS
key=$work/theirs.pub
refused 'changed: SHA256SUMS does not verify with theirs.pub: *' true
