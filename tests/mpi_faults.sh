#!/usr/bin/env bash
# mpi_faults.sh RANK_PROGRAM COUNT [SEED] MPIRUN...: jobs in which one of three ranks comes to grief.
# Each must end by itself within the deadline (2 s), what MPI takes to start and end, and a margin
# for busy machines; leave no process and nothing in shared memory; and say who, whom, where and
# when, or right results, or MPI's own notice of the rank that died.
set -euo pipefail

program=$1 count=$2 seed=$3
shift 3
limit_s=60
[ "$seed" != - ] || seed=$((RANDOM * 32768 + RANDOM))
echo "mpi_faults.sh: $count jobs from seed $seed"

shared_memory() { find /dev/shm -mindepth 1 -user "$(id -u)" | sort; }
survivors() { pgrep -f "^$program $1\$" || true; }

# One line on what is wrong; nothing if all is well.
judge() { # judge <exit code> <output> <seed> <ms>
  [ "$4" -lt "${limit_s}000" ] || { echo "HANG: not ended after $limit_s s"; return; }
  ! grep -qE 'WRONG|VAGUE' <<<"$2" || { grep -E 'WRONG|VAGUE' <<<"$2" | head -n 1; return; }
  [ -z "$(survivors "$3")" ] || { echo "processes are left"; return; }
  [ "$1" != 0 ] || { [ "$(grep -c ': right$' <<<"$2")" = 3 ] || echo "no error, no results"; return; }
  grep -qE '^rank [0-9]: error: |exited on signal 9' <<<"$2" || echo "ended without a word"
}

failed=0
times=()
before=$(shared_memory)
for ((i = 0; i < count; i++)); do
  begin=${EPOCHREALTIME/./}
  code=0
  output=$(timeout -k 5 "$limit_s" "$@" "$program" "$((seed + i))" 2>&1) || code=$?
  times+=("$(((${EPOCHREALTIME/./} - begin) / 1000))")
  struck=$(sed -n 's/^struck: //p' <<<"$output")
  wrong=$(judge "$code" "$output" "$((seed + i))" "${times[-1]}")
  echo "seed $((seed + i)): ${struck#*: }: exit code $code after ${times[-1]} ms${wrong:+: $wrong}"
  [ -z "$wrong" ] || { failed=1; printf '%s\n' "$output" | head -n 20; }
done
after=$(shared_memory)
[ "$before" = "$after" ] || { echo "left in /dev/shm: $after"; failed=1; }
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$(((count + 1) / 2))p")
echo "$count jobs, median $median ms from start to end, failed: $failed"
exit "$failed"
