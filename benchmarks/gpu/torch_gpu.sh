#!/usr/bin/env bash
# On a machine with GPUs, Python, torch and nanobind: builds the Python extension, then
#
#   checks  libra.attention between two processes
#   faults  random faults that strike two and three, by copy engines and over NCCL
#   hosts   checks over NCCL, as between hosts (two GPUs)
#   experts training beside Megatron-Core's expert parallelism, where that is installed
#   soak    random pools and windows for minutes, while nothing may grow
#   curves  200 steps of training with and without Libra
#   train   a Qwen3 of real width, method by method (two GPUs)
#
#   torch_gpu.sh [--python PYTHON] [--limit SECONDS] [STEP]...
#
# Without steps, all that the GPUs allow. Processes share a GPU where there is one.
# The build goes to build/gpu (as bench_gpu.sh's). A step that fails is reported; the others go on.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
python=python3 limit=240 steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --python) python=$2 && shift ;;
    --limit) limit=$2 && shift ;;
    checks | faults | hosts | experts | soak | curves | train) steps+=("$1") ;;
    *) echo "torch_gpu.sh: '$1' is no option and no step" >&2 && exit 1 ;;
  esac
  shift
done
if [ ${#steps[@]} -eq 0 ]; then
  steps=(checks faults experts soak curves)
  [ "$(nvidia-smi --list-gpus | wc -l)" -lt 2 ] || steps+=(hosts train)
fi
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
soak() { timed "$python" python/tests/long_runs.py peer $((limit - 60)); }
experts() { timed "$python" python/tests/megatron_checks.py; }

faults() { timed "$python" python/tests/faults.py cuda 20; }

# torchrun of two ranks; with one GPU they share it, over gloo.
trained() { # trained <program> <arguments of train_qwen3.py...>
  timed "$python" -m torch.distributed.run --standalone --nproc-per-node 2 \
    "$1" --lengths data/mix.npy --oversize split --pool 2 "${@:2}"
}

# How far training with libra is from training without, beside how far seeds are from each other.
curves() {
  local run folder=build/gpu/curves
  mkdir -p "$folder"
  for run in none:0 none:1 none:2 libra:0 libra-faithful:0; do
    trained examples/train_qwen3.py --seq-len 16K --gbs 4 --block 1K --hidden 512 --layers 2 \
      --heads 8 --kv-heads 2 --vocabulary 4096 --steps 200 \
      --attention "${run%:*}" --seed "${run#*:}" \
      --json "$folder/$run.json" >"$folder/$run.log" 2>&1
  done
  timed "$python" benchmarks/gpu/loss_curves.py "$folder"
}

# Layers of the width of Qwen3-30B-A3B, as many as are quick, by method.
train() {
  trained benchmarks/gpu/train_methods.py --seq-len 64K --gbs 4 --layers 6 --steps 6 --warm-up 2 \
    --device-profile h200 --tau 0.005 --methods ideal,none,libra-refetch,libra-faithful,wlb
  trained benchmarks/gpu/train_methods.py --seq-len 256K --gbs 2 --layers 2 --steps 3 --warm-up 1 \
    --device-profile h200 --tau 0.005 --methods ideal,none,libra-refetch
}

for step in "${steps[@]}"; do
  case $step in
    checks) checks ;;
    faults) faults ;;
    hosts) hosts ;;
    soak) soak ;;
    experts) experts ;;
    curves) curves ;;
    train) train ;;
  esac
done
exit $failed
