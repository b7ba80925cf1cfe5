"""One self-contained interactive page from JSON results of `libra simulate`, `tune` and `paper`.

    python -m libra.report sim64.json sim256.json tune.json paper.json -o report.html

What a page shows depends on what the results hold: sample lengths, load per worker, stragglers,
throughput and the pipeline's timeline from `simulate` (the last one given), scaling curves from
several of them, pool sizes from `tune`, the paper's sweep and scaling from `paper`.
"""

from libra.report.page import render
from libra.report.results import Results, read_results

__all__ = ["Results", "read_results", "render"]
