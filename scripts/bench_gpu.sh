#!/usr/bin/env bash
# On a machine with GPUs: builds, checks, times and prints the tables of docs/results.md.
# bench_gpu.sh [seconds for each of the long steps, default 120]
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${1:-120}
build=build/gpu

cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLIBRA_WITH_CUDA=ON -DLIBRA_WITH_MPI=OFF \
  -DLIBRA_BUILD_TESTS=ON -DLIBRA_BUILD_BENCHMARKS=ON --log-level=NOTICE
cmake --build "$build" --target libra pool_times attention_rates libra_cuda_test \
  libra_transport_peer_test libra_gpu_pool_test

for test in rooms/cuda/libra_cuda_test rooms/transport/peer/libra_transport_peer_test \
  tests/libra_gpu_pool_test; do
  timeout "$limit" "$build/$test" --gtest_brief=1
done

profile=$build/profile.json
timeout "$limit" "$build/benchmarks/attention_rates"
timeout "$limit" "$build/libra" calibrate --output "$profile" --block-rates
if [ "$(nvidia-smi --list-gpus | wc -l)" -gt 1 ]; then
  timeout "$limit" "$build/libra" calibrate --equal-work-steps 60 --copies
  for length in 128K 256K; do
    timeout "$limit" "$build/benchmarks/pool_times" --seq-len "$length" --profile "$profile" \
      --pools 12
  done
fi
timeout "$limit" "$build/libra" replay --corpus synthetic:paper-256k --seq-len 256K --gbs 64 \
  --dp 8 --cp 8 --pool 8 --cost seconds --tau 0.005 --device-profile "$profile"
