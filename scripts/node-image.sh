# Sourced after node.sh by who makes images for the node: it pulls none. Needs buildah.
# shellcheck shell=bash

# What is made of the files in $work/files is in $work, too.
buildah() { command buildah --storage-driver vfs --root "${work:?}/storage" --runroot "$work/run" "$@"; }

# image NAME ENTRYPOINT COMMAND: an image of what is in $work/files.
image() {
  local archive=$work/image.tar
  printf 'FROM scratch\nCOPY . /\nENTRYPOINT %s\nCMD %s\n' "$2" "$3" |
    buildah bud --quiet --isolation chroot --file - --tag "$1" "$work/files" >/dev/null
  rm -f "$archive"
  buildah push --quiet "$1" "docker-archive:$archive:$1"
  load "$archive"
}

# program_image NAME PROGRAM: of this program alone, so what else is in $work/files goes.
program_image() {
  rm -rf "${work:?}/files"
  mkdir "$work/files"
  cp "$2" "$work/files/program"
  image "$1" '["/program"]' '[]'
}

# The numbers of all nodes but the first.
further() { seq 2 "${NODES:-1}"; }

# add_nodes: these. Operators go where there is room for them, so their images are there too.
add_nodes() {
  local archive number
  for number in $(further); do
    scripts/realnode-further-node.sh "$number" up
    for archive in dist/images/*.tar; do
      scripts/realnode-further-node.sh "$number" load "$archive"
    done
    step "node $number is up"
  done
}

# load FILE: onto every node.
load() {
  local number
  "${realnode:?}" load "$1" >/dev/null
  for number in $(further); do scripts/realnode-further-node.sh "$number" load "$1"; done
}
