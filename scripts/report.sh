#!/usr/bin/env bash
# Runs `python -m libra.report` in the environment that bootstrap.sh makes:
#   report.sh RESULT.json... -o report.html
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/bootstrap.sh" report
venv=${LIBRA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/libra/venv}
PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m libra.report "$@"
