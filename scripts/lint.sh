#!/usr/bin/env bash
# Checks the sources: lint.sh [format|text|shell|headers|tidy]..., all of them by default.
# `lint.sh rewrite` applies clang-format instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# Files that git tracks or would track, so that a new file is not missed, without deleted ones.
sources() {
  git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
  done
}

lint_rewrite() { sources '*.h' '*.cpp' '*.cu' | xargs -r clang-format-14 -i; }
lint_format() { sources '*.h' '*.cpp' '*.cu' | xargs -r clang-format-14 --dry-run -Werror; }
lint_text() { sources | bash scripts/check_text.sh; }
lint_shell() { sources '*.sh' .ci/run | xargs -r shellcheck; }

# Every public header compiles alone.
lint_headers() {
  cmake --preset tidy --log-level=WARNING >/dev/null
  cmake --build --preset tidy --target all_verify_interface_header_sets -- --quiet
}

# run-clang-tidy prints each command, in colour; what matters are the findings. Left out: the one
# source that includes cuDNN's headers, which alone takes three minutes.
lint_tidy() {
  cmake --preset tidy --log-level=WARNING >/dev/null
  mapfile -t files < <(sources '*.cpp' | grep -vE '^tests/consumer/|/sdpa_graph.cpp$')
  run-clang-tidy-14 -quiet -p build/tidy -j "$(nproc)" "${files[@]/#//}" >build/tidy/log 2>&1 || {
    sed 's/\x1b\[[0-9;]*m//g' build/tidy/log |
      grep -vE '^clang-tidy|warnings? (generated|treated)|^Suppressed|^$' >&2
    return 1
  }
}

[ $# -gt 0 ] || set -- format text shell headers tidy
for check in "$@"; do
  declare -F "lint_$check" >/dev/null || { echo "lint: no check '$check'" >&2; exit 1; }
  echo "lint: $check"
  "lint_$check"
done
