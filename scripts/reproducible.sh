#!/usr/bin/env bash
# Builds a program twice, in two folders with nothing compiled before, and compares the bytes.
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
  make --no-print-directory --directory "$work/$folder" build PROGRAMS="$program" COMMIT=0123456789ab
  sums+=("$(sha256sum <"$work/$folder/dist/bin/$program")")
  if grep --quiet --fixed-strings "$work" "$work/$folder/dist/bin/$program"; then
    echo "$program names the folder in which it was built" >&2
    exit 1
  fi
  rm -rf "$CARGO_TARGET_DIR"
done
if [ "${sums[0]}" != "${sums[1]}" ]; then
  echo "$program: ${sums[0]%% *} in one folder, ${sums[1]%% *} in the other" >&2
  exit 1
fi
echo "$program: ${sums[0]%% *} in both folders"
