#!/usr/bin/env bash
# Rules of the house that no compiler knows. Reads file names from standard input.
# shellcheck disable=SC2317  # the functions are called by name, in forbid
set -euo pipefail

mapfile -t files
mapfile -t code < <(printf '%s\n' "${files[@]}" |
  grep -E '\.(h|cpp|cu|cmake|sh|py|in)$|CMakeLists\.txt$|^Makefile$')

# The arrows of docs/design.md: what each room may include besides itself.
declare -A arrows=(
  [base]=''
  [cuda]='base'
  [corpus]='base'
  [cost]='base'
  [plan]='base corpus cost'
  [sim]='base corpus cost plan'
  [attention]='base cuda'
  [transport]='base cuda'
  [runtime]='base cuda corpus cost plan attention transport'
  [cli]='base cuda corpus cost plan sim attention transport runtime'
)


against_the_arrows() {
  local room allowed
  for room in "${!arrows[@]}"; do
    allowed="$room ${arrows[$room]}"
    printf '%s\n' "${files[@]}" | grep "^libra/$room/" |
      xargs -r grep -nE '^#include "libra/' /dev/null | grep -vE "\"libra/(${allowed// /|})/"
  done
}

headers_without_comment() {
  local header
  printf '%s\n' "${files[@]}" | grep -E '\.h(\.in)?$' | while IFS= read -r header; do
    [[ $(head -n 1 "$header") == //* ]] || echo "$header"
  done
}

open_ends() { grep -nE '\b(TO[D]O|FIX[M]E|X[X]X|HAC[K])\b' "${code[@]}"; }
machine_paths() {
  grep -nIE '(^|[^[:alnum:]_.$}/-])/(home|root|work|mnt|Users|tmp)/' "${files[@]}"
}
long_lines() { grep -nE '^.{101,}$' "${code[@]}"; }

failed=0
forbid() { # forbid <function that prints findings> <rule>
  local findings
  findings=$("$1" || true) # grep fails when it finds nothing, which is what is wanted
  [ -z "$findings" ] || { printf '%s\n%s\n' "$2" "$findings" >&2; failed=1; }
}

forbid headers_without_comment 'A header begins with a comment that says what it is for:'
forbid open_ends 'Open ends belong in an issue, not in the sources:'
forbid machine_paths 'A path of one machine:'
forbid long_lines 'A line of more than 100 columns:'
forbid against_the_arrows 'An include against the arrows (docs/design.md):'
exit "$failed"
