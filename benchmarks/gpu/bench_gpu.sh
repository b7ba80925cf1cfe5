#!/usr/bin/env bash
# On a machine with GPUs, however many: builds, checks, times, and prints the figures of
# docs/results.md as JSON lines.
#
#   bench_gpu.sh [--build DIR] [--profile FILE] [--limit SECONDS] [STEP]...
#
# Steps: checks, kernels, calibrate, pools, parts, nccl, long, replay; without any, all of them.
# --build names a folder with the programs (default: they are built to build/gpu); --profile a
# device profile to predict with (default: what `calibrate` writes, or the built-in one); --limit
# bounds every program (default 120 s). A step that fails is reported, and the others go on.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
programs='' profile='' limit=120 steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) programs=$2 && shift ;;
    --profile) profile=$2 && shift ;;
    --limit) limit=$2 && shift ;;
    checks | kernels | calibrate | pools | parts | nccl | long | replay) steps+=("$1") ;;
    *) echo "bench_gpu.sh: '$1' is no option and no step" >&2 && exit 1 ;;
  esac
  shift
done
[ ${#steps[@]} -gt 0 ] || steps=(checks kernels calibrate pools parts nccl long replay)
gpus=$(nvidia-smi --list-gpus | wc -l)
failed=0

build() {
  cmake -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DLIBRA_WITH_CUDA=ON -DLIBRA_WITH_MPI=OFF \
    -DLIBRA_BUILD_TESTS=ON -DLIBRA_BUILD_BENCHMARKS=ON --log-level=NOTICE
  cmake --build build/gpu --target libra pool_times attention_rates libra_gpu_pool_test \
    libra_gpu_process_pool_test libra_transport_peer_test libra_transport_peer_process_test \
    libra_transport_nccl_test
  programs=build/gpu/bin
  mkdir -p "$programs"
  find build/gpu -type f -perm -u+x \( -name 'libra_*_test' -o -name libra -o -name pool_times \
    -o -name attention_rates \) -exec ln -sf --relative -t "$programs" {} +
}

timed() { # timed <program> <arguments...>
  local begin=$SECONDS status=0
  echo "== $*"
  timeout "$limit" "$programs/$1" "${@:2}" || status=$?
  echo "== $1: $((SECONDS - begin)) s, exit status $status"
  [ "$status" = 0 ] || { failed=1 && return 1; }
}

# All at once: nothing here is a matter of time, and the GPUs have room for it.
checks() {
  local test running=() logs
  logs=$(mktemp -d)
  for test in libra_transport_peer_test libra_transport_peer_process_test \
    libra_transport_nccl_test libra_gpu_pool_test libra_gpu_process_pool_test; do
    timed "$test" --gtest_brief=1 >"$logs/$test" 2>&1 &
    running+=($!)
  done
  for test in "${running[@]}"; do wait "$test" || failed=1; done
  cat "$logs"/*
  rm -r "$logs"
}

kernels() {
  timed attention_rates
}

calibrate() {
  timed libra calibrate --output build/h200.json --block-rates && profile=build/h200.json
  if [ "$gpus" -gt 1 ]; then timed libra calibrate --equal-work-steps 60 --copies; fi
}

pool_times() { # pool_times <P> <CP> <arguments...>
  timed pool_times --pool "$1" --cp "$2" --profile "${profile:-h200}" "${@:3}"
}

# Every way to lay the GPUs out. At CP 1, Ulysses is `none` in one shard.
pools() {
  local corpus cp methods
  for corpus in data/mix.npy synthetic:paper-256k; do
    for ((cp = 1; cp <= gpus; cp *= 2)); do
      methods=none,libra,one-chunk,four-chunks,faithful
      [ "$cp" = 1 ] || methods=none,ulysses,libra,one-chunk,four-chunks,faithful
      pool_times $((gpus / cp)) "$cp" --corpus "$corpus" --seq-len 256K --gbs $((2 * gpus)) \
        --windows 1 --host-layers 0 --methods "$methods"
    done
  done
}

# On the widest pool, each part of the system taken away.
parts() {
  pool_times "$gpus" 1 --seq-len 128K --windows 2
  pool_times "$gpus" 1 --seq-len 128K --windows 2 --methods none,libra --one-queue
}

nccl() {
  pool_times "$gpus" 1 --seq-len 128K --windows 2 --methods none,libra,four-chunks \
    --transport nccl
}

long() {
  pool_times 1 "$gpus" --corpus synthetic:paper-1m --seq-len 1M --gbs 2 --windows 1 \
    --methods ulysses,libra --host-layers 0
}

replay() {
  timed libra replay --corpus synthetic:paper-256k --seq-len 256K --gbs 64 --dp 8 --cp 8 --pool 8 \
    --chunks 4 --cost seconds --tau 0.005 --device-profile "${profile:-h200}"
}

[ -n "$programs" ] || build || exit 1
for step in "${steps[@]}"; do
  case $step in
    checks) checks ;;
    kernels) kernels ;;
    calibrate) calibrate ;;
    pools) pools ;;
    parts) parts ;;
    nccl) nccl ;;
    long) long ;;
    replay) replay ;;
  esac
done
exit $failed
