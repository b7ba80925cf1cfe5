#!/usr/bin/env bash
# Builds the wheel of the Python package without CUDA, as `pip install .` does where there is none,
# and looks whether it holds the stubs and can be used from a fresh virtual environment, without
# torch. Seconds where ccache has the objects; the packages it needs: scripts/bootstrap.sh test.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${LIBRA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/libra/venv}
"$venv/bin/python" -c 'import nanobind, scikit_build_core' 2>/dev/null || {
  echo "check_wheel: left out, for want of nanobind or scikit_build_core (bootstrap.sh test)"
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true
export CXX=c++ # as the other builds call it, which ccache tells apart
export SKBUILD_CMAKE_DEFINE=LIBRA_WITH_CUDA=OFF
PATH=$venv/bin:$PATH "$venv/bin/pip" wheel . --quiet --no-deps --no-build-isolation --no-index \
  --config-settings=build-dir=build/wheel-cpu --wheel-dir "$work"

wheel=$(echo "$work"/libra-*.whl)
files=$(python3 -m zipfile --list "$wheel")
for file in py.typed __init__.pyi _core.pyi integrations/megatron.py; do
  grep -q "^libra/$file " <<<"$files" ||
    { echo "check_wheel: ${wheel##*/} has no libra/$file" >&2 && exit 1; }
done

python3 -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet --no-deps --no-index "$wheel"
cd "$work" # away from the sources
fresh/bin/python -c '
import libra
options = libra.PlanOptions(q_heads=8, kv_heads=4, head_dim=16)
plan = libra.make_plan(options, [libra.PackedSequence(64, [64]), libra.PackedSequence(64, [9])])
assert plan.validate() == [] and plan.workers == 2
try:
    libra.attention
except ImportError as error:
    assert "pip install torch" in str(error), error
print(f"libra {libra.__version__} from a wheel: {plan}")'
