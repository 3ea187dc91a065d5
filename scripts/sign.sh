#!/usr/bin/env bash
# Signs the checksums of a release, and with them all its files, into SHA256SUMS.sigstore.json.
#   sign.sh COSIGN KEY FOLDER
set -euo pipefail

[ $# = 3 ] || { echo "usage: sign.sh COSIGN KEY FOLDER" >&2; exit 1; }
cosign=$1 key=$2 folder=$3

# No entry in a transparency log: signing and verifying have to work offline.
"$cosign" sign-blob --key "$key" --use-signing-config=false --tlog-upload=false \
  --bundle "$folder/SHA256SUMS.sigstore.json" "$folder/SHA256SUMS"
# cosign writes it for its owner alone.
chmod a+r "$folder/SHA256SUMS.sigstore.json"
