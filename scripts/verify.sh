#!/usr/bin/env bash
# Verifies a release: the signature of its checksums, and that it has the listed files, unchanged, and no others.
#   verify.sh COSIGN PUBLIC_KEY FOLDER
set -euo pipefail

[ $# = 3 ] || { echo "usage: verify.sh COSIGN PUBLIC_KEY FOLDER" >&2; exit 1; }
cosign=$1 key=$2 folder=$3
signature=SHA256SUMS.sigstore.json

for file in SHA256SUMS "$signature"; do
  [ -f "$folder/$file" ] || { echo "$folder: $file is missing" >&2; exit 1; }
done

if ! said=$("$cosign" verify-blob --key "$key" --insecure-ignore-tlog --bundle "$folder/$signature" "$folder/SHA256SUMS" 2>&1); then
  reason=${said##*error during command execution: }
  echo "$folder: SHA256SUMS does not verify with $key: ${reason//$'\n'/ }" >&2
  exit 1
fi

cd "$folder"
# Symbolic links too, which the checksums of a release never list.
present=$(find . ! -type d ! -path ./SHA256SUMS ! -path "./$signature" -printf '%P\0' | xargs --null --no-run-if-empty sha256sum)
differences=$(awk '{ name = substr($0, 67) }
  NR == FNR { listed[name] = $1; next }
  !(name in listed) { print name ": not in SHA256SUMS"; next }
  listed[name] != $1 { print name ": changed" }
  { delete listed[name] }
  END { for (name in listed) print name ": missing" }' SHA256SUMS - <<<"$present" | LC_ALL=C sort)
if [ -n "$differences" ]; then
  echo "$differences" >&2
  exit 1
fi
echo "$folder: signed with $key, and all $(wc --lines <SHA256SUMS) files are as signed"
