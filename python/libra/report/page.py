"""The page around the charts: one HTML file with everything in it."""

import html

import plotly.io
from plotly.offline import get_plotlyjs

from libra.report.charts import charts_of
from libra.report.results import Results

STYLE = """
:root { color-scheme: light; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1d2a33; background: #f4f6f7; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 1.7rem; margin: 0 0 4px; }
h2 { font-size: 1.15rem; margin: 0; }
p { margin: 4px 0 12px; color: #4c5b66; overflow-wrap: anywhere; }
section { background: white; border-radius: 10px; padding: 18px; margin: 18px 0;
          box-shadow: 0 1px 3px rgb(0 0 0 / 8%); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; }
.fact { background: white; border-radius: 10px; padding: 12px 16px;
        box-shadow: 0 1px 3px rgb(0 0 0 / 8%); }
.fact b { display: block; font-size: 1.35rem; }
.fact span { color: #4c5b66; font-size: .9rem; }
"""


def render(results: Results) -> str:
    """The page as text. It loads nothing from anywhere."""
    sections = "".join(_section(i, *chart) for i, chart in enumerate(charts_of(results)))
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<link rel='icon' href='data:,'>"
        f"<title>Libra report</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body><main>"
        f"<h1>Libra report</h1><p>{html.escape(_subtitle(results))}</p>"
        f"{_facts(results)}{sections}</main></body></html>\n"
    )


def _section(index: int, title: str, text: str, figure) -> str:
    chart = plotly.io.to_html(
        figure,
        include_plotlyjs=False,
        full_html=False,
        div_id=f"chart-{index}",
        default_width="100%",
        config={"responsive": True, "displayModeBar": False},
    )
    return f"<section><h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{chart}</section>"


def _subtitle(results: Results) -> str:
    run = results.simulation or (results.tunes[-1] if results.tunes else None)
    if run is None:
        return f"The paper's experiments on {results.papers[-1]['cluster']}"
    return (
        f"{run['corpus']['name']} at {run['seq_len']:,} tokens a sequence, {run['model']['name']} "
        f"on {run['cluster']}: {run['gpus']} GPUs = DP {run['dp']} x PP {run['pp']} x "
        f"CP {run['cp']}, {run['gbs']} sequences a step, {run['steps']} steps"
    )


def _facts(results: Results) -> str:
    if results.simulation is None:
        return ""
    methods = results.simulation["methods"]
    libra = methods.get("libra", {})
    if "straggler_mean_ms" not in libra:
        return ""
    facts = [
        (f"{libra['tokens_per_gpu_s']:,.0f}", "tokens a second and GPU with libra"),
        (f"{100 * libra['scaling_efficiency']:.0f}%", "of perfect balance on a free network"),
        (f"{libra['max_over_mean']:.2f}", "slowest worker over the mean"),
    ]
    if libra["speedup_mean_vs_ulysses"]:
        speedup = f"{libra['speedup_mean_vs_ulysses']:.2f} x"
        facts.insert(0, (speedup, "core attention against Ulysses, mean straggler"))
    tiles = "".join(
        f"<div class='fact'><b>{value}</b><span>{what}</span></div>" for value, what in facts
    )
    return f"<div class='facts'>{tiles}</div>"
