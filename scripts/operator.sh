#!/usr/bin/env bash
# Writes an operator as a copy of its sibling: operator.sh NAME LIKE, as `make operator` does. Names, event source and
# queues are replaced by those that upstream gives the controller of that name.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "failed: $*" >&2
  exit 1
}

name=${1:-} like=${2:-}
[[ $name == *-operator && $like == *-operator ]] || fail "usage: make operator NAME=x-operator LIKE=ttl-operator"
[ -d "operators/$like" ] || fail "there is no operators/$like"
[ ! -e "operators/$name" ] || fail "operators/$name exists"
stem=${name%-operator} like_stem=${like%-operator}

# The row of tidy's table: row("name", &[queues]) or from("name", "event source", &[queues]).
row=$(tr -d '\n' < tidy/tests/tidy/upstream.rs | grep -oE "(row|from)\( *\"$stem-controller\"[^]]*\]") ||
  fail "upstream has no $stem-controller"
mapfile -t texts < <(grep -oE '"[^"]*"' <<< "$row" | tr -d '"')
source=${texts[0]} queues=("${texts[@]:1}")
if [[ $row == from* ]]; then source=${texts[1]} queues=("${texts[@]:2}"); fi

# node-ipam -> NodeIpam
camel() { sed -E 's/(^|-)(.)/\U\2/g' <<< "$1"; }
like_type=$(sed -nE 's/.*main::<(\w+)Operator>.*/\1/p' "operators/$like/src/main.rs")

life=e2e/tests/suite/privilege/${name//-/_}.rs
cp -r "operators/$like" "operators/$name"
cp -r "manifests/$like" "manifests/$name"
cp "e2e/tests/suite/privilege/${like//-/_}.rs" "$life"
mapfile -t files < <(find "operators/$name" "manifests/$name" "$life" -type f)
sed -i -E \
  -e "s/(^|[^[:alnum:]-])$like_stem-(operator|controller)/\1$stem-\2/g" \
  -e "s/\b${like//-/_}\b/${name//-/_}/g" \
  -e "s/\b$like_type(Operator|Controller)\b/$(camel "$stem")\1/g" \
  -e "s/^namePrefix: $like_stem-$/namePrefix: $stem-/" "${files[@]}"

# The sibling stays the keeper of its kinds.
facts=operators/$name/src/facts.rs
sed -i -E -e "s/(event_source: )\"[^\"]*\"/\1\"$source\"/" -e 's/Acts::keeps(_with_status)?\(/Acts::on(/' "$facts"
number=0
while read -r old; do
  new=${queues[number]:-$old}
  sed -i "/Queue::/s/\"$old\"/\"$new\"/" "$facts"
  sed -i "s/\`$old\`/\`$new\`/g" "operators/$name/README.md"
  number=$((number + 1))
done < <(sed -nE 's/.*Queue::.*"([^"]*)"\);/\1/p' "$facts")

# Other names may break lines elsewhere.
rustfmt --edition 2024 "operators/$name/src/lib.rs" "operators/$name/src/main.rs" "operators/$name"/tests/*.rs "$life"
wc -l "${files[@]}"
