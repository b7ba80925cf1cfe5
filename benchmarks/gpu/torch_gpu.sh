#!/usr/bin/env bash
# On a machine with two GPUs or more, Python, torch and nanobind: builds the Python extension, runs
# the checks of libra.attention between two processes, over NCCL as between hosts too, and trains a
# Qwen3 for some steps.
#
#   torch_gpu.sh [--python PYTHON] [--limit SECONDS] [checks|hosts|train]...
#
# The build goes to build/gpu (as bench_gpu.sh's). A step that fails is reported; the others go on.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
python=python3 limit=240 steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --python) python=$2 && shift ;;
    --limit) limit=$2 && shift ;;
    checks | hosts | train) steps+=("$1") ;;
    *) echo "torch_gpu.sh: '$1' is no option and no step" >&2 && exit 1 ;;
  esac
  shift
done
[ ${#steps[@]} -gt 0 ] || steps=(checks hosts train)
failed=0

# cuDNN as torch has it, so that one process holds one.
cudnn=$("$python" -c 'import nvidia.cudnn; print(nvidia.cudnn.__path__[0])' 2>/dev/null)
cmake -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DLIBRA_WITH_CUDA=ON -DLIBRA_WITH_MPI=OFF \
  -DLIBRA_WITH_PYTHON=ON -DPython_EXECUTABLE="$(command -v "$python")" \
  ${cudnn:+-DLIBRA_CUDNN_ROOT="$cudnn"} --log-level=NOTICE &&
  cmake --build build/gpu --target libra_python || exit 1
export PYTHONPATH=$PWD/build/gpu/python PYTHONDONTWRITEBYTECODE=1

timed() {
  local begin=$SECONDS status=0
  echo "== $*"
  timeout "$limit" "$@" || status=$?
  echo "== $((SECONDS - begin)) s, exit status $status"
  [ "$status" = 0 ] || failed=1
}

checks() { timed "$python" python/tests/gpu_checks.py; }
hosts() { timed "$python" python/tests/gpu_checks.py hosts; }

# Layers of the width of Qwen3-30B-A3B, as many as are quick, by method.
train() {
  local method
  for method in none libra libra-faithful; do
    timed "$python" -m torch.distributed.run --standalone --nproc-per-node 2 \
      examples/train_qwen3.py --lengths data/mix.npy --oversize split --seq-len 64K --gbs 4 \
      --pool 2 --hidden 2048 --layers 4 --steps 12 --attention "$method"
  done
}

for step in "${steps[@]}"; do
  case $step in
    checks) checks ;;
    hosts) hosts ;;
    train) train ;;
  esac
done
exit $failed
