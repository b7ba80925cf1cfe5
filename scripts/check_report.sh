#!/usr/bin/env bash
# Checks the report. Exits with 77, and says why, if what a check needs is not there:
#   check_report.sh units                 the Python tests: need plotly
#   check_report.sh page <libra> <folder> makes a page from real results of this program and looks
#                                         at it in a browser, at the width of a desktop and of a
#                                         telephone: all charts drawn, nothing wider than the page,
#                                         no message on the console
#   check_report.sh                       both, after installing what they need; to build/report
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${LIBRA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/libra/venv}
export PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1

skip() {
  echo "report: not checked: $1"
  exit 77
}

need_plotly() {
  "$venv/bin/python" -c 'import plotly' 2>/dev/null ||
    skip 'no plotly, which scripts/bootstrap.sh report brings'
}

check_units() {
  need_plotly
  "$venv/bin/python" -m unittest -q libra.report.report_test
}

case ${1:-both} in
  units)
    check_units
    exit
    ;;
  page)
    libra=$2 out=$3
    need_plotly
    command -v chromium-headless-shell >/dev/null ||
      skip 'no chromium-headless-shell, which scripts/bootstrap.sh browser brings'
    ;;
  both)
    scripts/bootstrap.sh report browser
    check_units
    libra=build/release/libra out=build/report
    ;;
  *)
    echo "report: '$1' is neither units nor page" >&2
    exit 1
    ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)

job=(--corpus data/mix.npy --oversize split --seq-len 256K --model qwen3-8b --cp 8 --pp 2 --gbs 128)
"$libra" simulate "${job[@]}" --gpus 64 --steps 2 --json "$out/64.json" >/dev/null
"$libra" simulate "${job[@]}" --gpus 256 --steps 5 --json "$out/256.json" >/dev/null
"$libra" tune "${job[@]}" --gpus 256 --steps 5 --json "$out/tune.json" >/dev/null
"$libra" paper --figures 12,15,13 --steps 2 --json "$out/paper.json" >/dev/null
scripts/report.sh "$out"/{64,256,tune,paper}.json -o "$out/report.html"

# A copy that says in its title what it measured about itself.
count() { printf 'document.querySelectorAll("%s").length' "$1"; }
fits='document.documentElement.scrollWidth <= window.innerWidth'
probe="document.title = [$(count .main-svg) > 0, $(count section),
  $(count 'section .plot-container'), $fits].join(' ')"
probe="window.addEventListener('load', () => setTimeout(() => { $probe }, 1500))"
page=$(<"$out/report.html")
printf '%s' "${page/<\/body>/<script>$probe<\/script><\/body>}" >"$out/probe.html"

browse() { # browse <width> <page> <option>...
  local width=$1 page=$2
  shift 2
  timeout 120 chromium-headless-shell --no-sandbox --disable-gpu --hide-scrollbars \
    --enable-logging=stderr --virtual-time-budget=10000 --window-size="$width",1600 "$@" \
    "file://$page"
}

for width in 1280 390; do
  browse "$width" "$out/probe.html" --dump-dom >"$out/dom" 2>"$out/log"
  browse "$width" "$out/report.html" --screenshot="$out/report-$width.png" >/dev/null 2>>"$out/log"
  if grep CONSOLE "$out/log"; then
    echo "report: a message on the console at $width px" >&2
    exit 1
  fi
  title=$(sed -n 's|.*<title>\([^<]*\)</title>.*|\1|p' "$out/dom" | head -n 1)
  read -r drawn sections charts fits <<<"$title"
  if [ "$drawn $fits" != "true true" ] || [ "$sections" != "$charts" ]; then
    echo "report: at $width px drawn=$drawn, $charts of $sections charts, fits=$fits" >&2
    exit 1
  fi
  echo "report: $charts charts at $width px, no console message"
done
