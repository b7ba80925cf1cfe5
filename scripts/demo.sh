#!/usr/bin/env bash
# A first complete run: packs a window of real sample lengths, balances it, executes the attention
# forward and backward on in-process workers, and checks the result against plain attention.
set -euo pipefail
cd "$(dirname "$0")/.."

corpus=examples/corpora/mix.npy
trace=build/demo/trace.json
mkdir -p "$(dirname "$trace")"

build/release/libra run --corpus "$corpus" \
  --seq-len 256K --gbs 16 --dp 4 --cp 2 --pool 2 --block 4096 --head-shards 2 --model qwen3-8b \
  --transport inproc --dtype fp32 --scale-lengths 1/128 --check --trace "$trace"

echo "Timeline: $trace (open it in Perfetto)"
