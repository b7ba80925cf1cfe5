#!/usr/bin/env bash
# Fuzzes what reads bytes from outside: fuzz.sh [SECONDS [TARGET...]], 60 seconds each of all of
# them by default, one after the other on one core. One line a target; the first finding ends it.
#
# No input may take longer than 10 seconds, allocate more than 512 MB at once, or hold more than
# 2 GB. What was found along the way stays in build/fuzz/found and is where the next run begins.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
[ $# -gt 0 ] || set -- npy idx jsonl text plan_binary plan_json plan_fields cluster_json \
  profile_json numbers
programs=build/fuzz/fuzz
limits=(-timeout=10 -malloc_limit_mb=512 -rss_limit_mb=2048 -max_len=16384)

mkdir -p build/fuzz/found/plan_binary build/fuzz/found/plan_json build/fuzz/findings
"$programs/plan_seeds" build/fuzz/found/plan_binary build/fuzz/found/plan_json

run() { # run <target>
  local found=build/fuzz/found/$1 log=build/fuzz/findings/$1.log folders
  folders=("$found")
  [ ! -d "fuzz/corpus/$1" ] || folders+=("fuzz/corpus/$1")
  mkdir -p "$found"
  "$programs/fuzz_$1" "${limits[@]}" -max_total_time="$seconds" -dict=fuzz/words.dict \
    -artifact_prefix="build/fuzz/findings/$1-" -print_final_stats=1 "${folders[@]}" \
    >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "fuzz: $1: FOUND, see build/fuzz/findings/$1-*" >&2
    return 1
  }
  sed -n 's/^stat::number_of_executed_units: */runs /p; s/^stat::peak_rss_mb: */peak MB /p' "$log" |
    paste -sd' ' | sed "s/^/fuzz: $1: $seconds s, /; s/\$/, $(edges "$log") edges, no finding/"
}

# Of the last line that counts them.
edges() { grep -oE 'cov: [0-9]+' "$1" | tail -n 1 | tr -dc '0-9'; }

failed=0
for target in "$@"; do
  run "$target" || failed=1
done
exit "$failed"
