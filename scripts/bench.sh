#!/usr/bin/env bash
# Runs every benchmark program and study of the release build, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t programs < <(find build/release/benchmarks \( -name '*_benchmark' -o -name '*_study' \) \
  -type f -executable | sort)
[ ${#programs[@]} -gt 0 ] || { echo 'bench: no program was built' >&2; exit 1; }
for program in "${programs[@]}"; do
  echo "== ${program##*/}"
  "$program"
done
