#!/usr/bin/env bash
# mpi_faults.sh RANK_PROGRAM COUNT SEED MPIRUN...: jobs in which one of three ranks comes to grief.
# A seed of - is drawn. Every rank must end by itself within the deadline (2 s), what MPI takes to
# start, and a margin for busy machines; leave no process and nothing in shared memory; and say
# who, whom, where and when, or have right results, unless MPI ends it for a rank that died.
#
#   tests/mpi_faults.sh $PWD/build/release/tests/fault_rank 60 - mpirun -n 3
set -euo pipefail

program=$1 count=$2 seed=$3
shift 3
limit_s=60
[ "$seed" != - ] || seed=$((RANDOM * 32768 + RANDOM))
echo "mpi_faults.sh: $count jobs from seed $seed"

shared_memory() { find /dev/shm -mindepth 1 -user "$(id -u)" | sort; }
ranks() { pgrep -f "^$program $1\$" || true; }

# Waits for the ranks, then for the launcher: OpenMPI 4.1's may lock itself up when all are gone.
await() { # await <launcher's process> <seed>; the outcome in $code and $ms
  local begin=${EPOCHREALTIME/./} tenths
  sleep 0.3
  while [ -n "$(ranks "$2")" ] ||
    { [ "$(elapsed "$begin")" -lt 3000 ] && kill -0 "$1" 2>/dev/null; }; do
    [ "$(elapsed "$begin")" -lt "${limit_s}000" ] || { code=124; kill -KILL "$1"; return; }
    sleep 0.1
  done
  ms=$(elapsed "$begin")
  for ((tenths = 0; tenths < 50; tenths++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  ! kill -KILL "$1" 2>/dev/null || { launchers=$((launchers + 1)); launcher_hung=1; }
  code=0
  wait "$1" 2>/dev/null || code=$?
}
elapsed() { echo $(((${EPOCHREALTIME/./} - $1) / 1000)); }

# One line on what is wrong; nothing if all is well.
judge() { # judge <exit code> <output> <seed>
  [ "$1" != 124 ] || { echo "HANG: ranks are there after $limit_s s"; return; }
  ! grep -m 1 -E 'WRONG|VAGUE|signal 11' <<<"$2" || return 0
  [ -z "$(ranks "$3")" ] || { echo "processes are left"; return; }
  if [ "$1" = 0 ]; then
    [ "$(grep -c ': right$' <<<"$2")" = 3 ] || echo "no error, no results"
    return
  fi
  grep -qE '^rank [0-9]: error: |exited on signal 9' <<<"$2" || echo "ended without a word"
}

failed=0
times=()
before=$(shared_memory)
launchers=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for ((i = 0; i < count; i++)); do
  ms=0 launcher_hung=0
  "$@" "$program" "$((seed + i))" >"$log" 2>&1 </dev/null &
  await "$!" "$((seed + i))"
  times+=("$ms")
  struck=$(sed -n 's/^struck: //p' "$log")
  wrong=$(judge "$code" "$(<"$log")" "$((seed + i))")
  [ "$launcher_hung" = 0 ] || struck+=' (the launcher stayed)'
  echo "seed $((seed + i)): ${struck#*: }: $ms ms, exit code $code${wrong:+: $wrong}"
  [ -z "$wrong" ] || { failed=1; head -n 20 "$log"; }
done
# Other jobs may run beside these: what they have there goes away.
for ((i = 0; i < 60; i++)); do
  left=$(comm -13 <(echo "$before") <(shared_memory))
  [ -n "$left" ] || break
  sleep 1
done
[ -z "$left" ] || { echo "left in /dev/shm: $left"; failed=1; }
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$(((count + 1) / 2))p")
echo "$count jobs, median $median ms from start to end, $launchers launchers stayed," \
  "failed: $failed"
exit "$failed"
