# Sourced by who builds in another folder: copies the files of the source tree, changed ones and new ones included.
# shellcheck shell=bash

# copy_sources FOLDER
copy_sources() {
  mkdir -p "$1"
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    tar --create --null --files-from - --ignore-failed-read | tar --extract --directory "$1"
}
