#!/usr/bin/env bash
# A first complete run: packs a window of real sample lengths, balances it, executes the attention
# forward and backward on in-process workers, and checks the result against plain attention.
set -euo pipefail
cd "$(dirname "$0")/.."

corpus=data/mix.npy
trace=build/demo/trace.json
mkdir -p "$(dirname "$trace")"

cat <<EOF
Real sample lengths ($corpus) are packed into 32 sequences of 256K tokens and grouped into pools of
4 with VRSP. The pool with the heaviest sequence is executed on 8 CPU workers, lengths scaled down:
first with every tile at its home (none), then balanced (--placer balanced). Both are checked.

EOF

build/release/libra run --corpus "$corpus" --oversize truncate \
  --seq-len 256K --gbs 32 --dp 8 --cp 2 --pool 4 --block 4096 --head-shards 2 --model qwen3-8b \
  --placer none,balanced --transport inproc --dtype fp32 --scale-lengths 1/128 --check \
  --trace "$trace" --json build/demo/run.json
