# Sourced by scripts that work in another folder: copies the source tree, changed and new files included.
# shellcheck shell=bash

# copy_sources FOLDER
copy_sources() {
  mkdir -p "$1"
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    tar --create --null --files-from - --ignore-failed-read | tar --extract --directory "$1"
}
