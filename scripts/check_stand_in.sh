#!/usr/bin/env bash
# Tests the transport of copy engines under sanitizers, with threads in the place of CUDA's streams
# (libra/transport/peer/stand_in_cuda.cpp): no GPU, but the toolkit's headers and nvcc.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || {
  echo "check_stand_in: left out, for want of nvcc"
  exit 0
}
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true

for preset in tsan asan; do
  build=build/stand-in-$preset
  cmake --preset "$preset" -B "$build" --log-level=NOTICE -DLIBRA_BUILD_TESTS=ON \
    -DLIBRA_WITH_CUDA=ON -DLIBRA_WITH_MPI=OFF
  cmake --build "$build" --target \
    libra_transport_peer_group_stand_in_test libra_transport_peer_process_stand_in_test
  ctest --test-dir "$build" --tests-regex without_gpu --no-tests=error --parallel 2 \
    --output-on-failure --no-label-summary
done
