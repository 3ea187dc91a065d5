#!/usr/bin/env bash
# Builds one operator's image from its binary in DIST/bin, writes it to DIST/images, and starts it. The file is an OCI
# archive that docker loads too. With buildah its bytes depend on the binary, the licences, the name, buildah's
# version and $SOURCE_DATE_EPOCH alone.
#   image.sh docker|buildah DIST OPERATOR IMAGE ARCHITECTURE [EMULATOR]
# With an emulator, which a binary of another architecture than this machine's needs, only the binary is started.
# buildah here needs neither a daemon nor namespaces, so it also works as root inside a container.
set -euo pipefail

case $# in 5 | 6) ;; *) echo "usage: image.sh docker|buildah DIST OPERATOR IMAGE ARCHITECTURE [EMULATOR]" >&2 && exit 1 ;; esac
engine=$1 dist=$2 operator=$3 image=$4 architecture=$5 emulator=${6:-}
archive=$dist/images/$operator.tar
limit_bytes=$((9 * 1024 * 1024)) run_as=65532:65532
# The one that has all: as much as one operator, and what each further one may add. As root it can read the keys of a
# control-plane node.
if [ "$operator" = operators ]; then
  run_as=0:0
  each=(operators/*/)
  limit_bytes=$((limit_bytes + 640 * (${#each[@]} - 1) * 1024))
fi

size_bytes=$(stat --format %s "$dist/bin/$operator")
if [ "$size_bytes" -gt "$limit_bytes" ]; then
  echo "$operator: the binary has $size_bytes bytes, more than $limit_bytes" >&2
  exit 1
fi

# Loaded at another address in each process (ET_DYN), because operators hold keys and tokens. Rust links static programs for
# arm64 to fixed addresses.
if [ "$architecture" = amd64 ] && [ "$(od --address-radix=n --format=u2 --skip-bytes=16 --read-bytes=2 "$dist/bin/$operator" | tr -d ' ')" != 3 ]; then
  echo "$operator: the binary is not position-independent" >&2
  exit 1
fi

# The section with the list of its crates, in the table of the names of sections.
if ! grep --quiet --text --fixed-strings .dep-v0 "$dist/bin/$operator"; then
  echo "$operator: the binary lacks the list of its crates; build it with make build" >&2
  exit 1
fi

# The blobs that a file of the layout names, in order.
blobs() { grep --only-matching '"digest":"sha256:[0-9a-f]*' "$1" | sed 's|.*sha256:|blobs/sha256/|'; }
# Docker finds an image by manifest.json, as in its own archives.
name_for_docker() {
  local config layers
  { read -r config && mapfile -t layers; } < <(blobs "$layout/$(blobs "$layout/index.json")")
  if [ ${#layers[@]} = 0 ]; then echo "$layout names no layers" >&2 && exit 1; fi
  printf '[{"Config":"%s","RepoTags":["%s"],"Layers":[%s]}]\n' "$config" "$image" \
    "$(printf '"%s"\n' "${layers[@]}" | paste --serial --delimiters ,)" >"$layout/manifest.json"
}

epoch=${SOURCE_DATE_EPOCH:-0}
build=(--platform "linux/$architecture" --file Dockerfile --target prebuilt --build-arg "OPERATOR=$operator" --build-arg "RUN_AS=$run_as" --tag "$image" "$dist/bin")
mkdir -p "$dist/images"
rm -f "$archive"
case $engine in
docker)
  docker build --quiet "${build[@]}" >/dev/null
  # Since version 25 it writes both forms.
  docker save --output "$archive" "$image"
  [ -n "$emulator" ] || version=$(docker run --rm "$image" --version)
  user=$(docker image inspect --format '{{.Config.User}}' "$image")
  ;;
buildah)
  storage=$(mktemp --directory)
  buildah() { command buildah --storage-driver vfs --root "$storage/root" --runroot "$storage/run" "$@"; }
  trap 'rm -rf "$storage"' EXIT
  buildah bud --quiet --isolation chroot --identity-label=false --timestamp "$epoch" "${build[@]}" >/dev/null
  layout=$storage/layout
  buildah push --quiet "$image" "oci:$layout:$image"
  name_for_docker
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" \
    --file "$archive" --directory "$layout" .
  container=$(buildah from --platform "linux/$architecture" --pull-never "$image")
  [ -n "$emulator" ] || version=$(buildah run --isolation chroot "$container" -- /operator --version)
  user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
  ;;
*)
  echo "an image needs docker with its daemon, or buildah" >&2
  exit 1
  ;;
esac

[ -z "$emulator" ] || version=$("$emulator" "$dist/bin/$operator" --version)
case $version in
"$operator ${image##*:}"*) ;;
*)
  echo "$image says of itself: $version" >&2
  exit 1
  ;;
esac
if [ "$user" != "$run_as" ]; then
  echo "$image runs as '$user'" >&2
  exit 1
fi
echo "$image: $version, binary $size_bytes bytes, archive $(stat --format %s "$archive") bytes"
