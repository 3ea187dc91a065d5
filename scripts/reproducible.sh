#!/usr/bin/env bash
# Builds a program and its image twice, in two folders with nothing compiled before, and compares the bytes.
#   reproducible.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/copy.sh
. scripts/copy.sh

program=${1:?names the program, such as ttl-operator}
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR
sums=()
for folder in one another/and/deeper; do
  copy_sources "$work/$folder"
  CARGO_TARGET_DIR=$work/$folder/built
  make --no-print-directory --directory "$work/$folder" image OPERATOR="$program" COMMIT=0123456789ab SOURCE_DATE_EPOCH=1
  sums+=("$(cd "$work/$folder/dist" && sha256sum "bin/$program" "images/$program.tar")")
  if grep --quiet --fixed-strings "$work" "$work/$folder/dist/bin/$program"; then
    echo "$program names the folder in which it was built" >&2
    exit 1
  fi
  rm -rf "$CARGO_TARGET_DIR"
done
if [ "${sums[0]}" != "${sums[1]}" ]; then
  printf 'in one folder:\n%s\nin the other:\n%s\n' "${sums[@]}" >&2
  exit 1
fi
printf 'in both folders:\n%s\n' "${sums[0]}"
