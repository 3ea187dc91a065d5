#!/usr/bin/env bash
# Builds the pages that docs/SUMMARY.md lists as a site, and checks every link in it.
#   site.sh MDBOOK FOLDER    the program mdbook, and where the site is written
# The pages link to files outside of docs. So all of them are copied, at their places in the repository, and a link is the
# same in the repository and on the site.
set -euo pipefail
mdbook=$(realpath "$1") site=$(realpath --canonicalize-missing "$2")
cd "$(dirname "$0")/.."

work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

# The targets of the links in a page, without anchors, as paths from the root of the repository.
targets() {
  grep --only-matching '](\([^)]*\))' "$1" | sed 's/^](//; s/)$//; s/#.*//' | grep --invert-match --extended-regexp '^$|://' |
    while read -r target; do realpath --canonicalize-missing --relative-to . "$(dirname "$1")/$target"; done
}
place() { install -D --mode 644 "$1" "$work/src/$1"; }

pages=$(targets docs/SUMMARY.md)
# mdbook writes a README.md as index.html, and does not change the links to it.
as_index='s/\(]([^)]*\)README\.md/\1index.md/g'
for page in $pages; do
  place "$page"
  sed --in-place "$as_index" "$work/src/$page"
  case $page in README.md | */README.md) mv "$work/src/$page" "$work/src/${page%README.md}index.md" ;; esac
done
# Other files, such as LICENSE, are served as they are.
for page in $pages; do targets "$page" || true; done | sort --unique | while read -r file; do
  case $file in *.md) ;; *) [ ! -f "$file" ] || place "$file" ;; esac
done
sed "s/](/](docs\//; s/](docs\/\.\.\//](/; $as_index" docs/SUMMARY.md > "$work/src/SUMMARY.md"
cp docs/book.toml "$work/"

rm -rf "$site"
"$mdbook" build --dest-dir "$site" "$work"

# Each link with the folder of its page; then what it names has to exist, with its anchor.
cd "$site"
broken=$(find . -name '*.html' ! -name 404.html ! -name toc.html | while read -r page; do
  grep --only-matching --extended-regexp '(href|src)="[^"]*"' "$page" | sed 's/^[a-z]*="//; s/"$//' |
    grep --invert-match --extended-regexp '^[a-z]+:' | sort --unique |
    while read -r link; do
      file=${link%%#*} anchor=''
      case $link in *'#'*) anchor=${link#*#} ;; esac
      to=$page
      [ -z "$file" ] || to=$(dirname "$page")/$file
      if [ ! -f "$to" ] || { [ -n "$anchor" ] && ! grep --quiet --fixed-strings "id=\"$anchor\"" "$to"; }; then
        echo "$page: links to $link, which is not there"
      fi
    done
done)
[ -z "$broken" ] || { echo "$broken" >&2 && exit 1; }
echo "$(find . -name '*.html' | wc -l) pages in $site"
