#!/usr/bin/env bash
# Writes the bill of materials of each program, as CycloneDX in JSON, into a folder.
#   sbom.sh CARGO_CYCLONEDX TARGET FOLDER PROGRAM...
# The tool writes beside each Cargo.toml, so it works on a copy. SOURCE_DATE_EPOCH is the time that it writes down.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/copy.sh
. scripts/copy.sh

tool=$1 target=$2 out=$(realpath "$3")
shift 3
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
copy_sources "$work"
"$tool" cyclonedx --quiet --manifest-path "$work/Cargo.toml" --format json --spec-version 1.5 --target "$target" --no-build-deps \
  --override-filename sbom.cdx
for program in "$@"; do
  # A package may have another name than its program.
  package=$(grep --files-with-matches --recursive --include Cargo.toml "^name = \"$program\"$" "$work" | head -n 1)
  # Hide the path of the copy.
  sed "s|$work|/source|g" "${package%Cargo.toml}sbom.cdx.json" >"$out/$program.cdx.json"
done
