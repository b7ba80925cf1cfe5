#!/usr/bin/env bash
# Looks for what only shows after long: soak.sh [STEPS], 10,000 by default. Builds what it needs.
# Memory, open files and threads must stay flat, and every result must be right.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh test
cmake --preset release --log-level=NOTICE -DLIBRA_BUILD_TESTS=ON
cmake --build --preset release --target soak
# Else chunks that threads keep would pass for held memory.
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
exec build/release/tests/soak --steps "${1:-10000}"
