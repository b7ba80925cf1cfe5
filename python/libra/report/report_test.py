"""python -m unittest libra.report.report_test, in an environment that has plotly."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from libra.report import read_results, render
from libra.report.__main__ import main
from libra.report.charts import charts_of
from libra.report.results import ResultError


def method(**changed) -> dict:
    operation = {"stage": 0, "microbatch": 0, "pass": "forward", "begin_s": 0.0, "end_s": 1.0}
    figures = {
        "straggler_mean_ms": 2.0,
        "straggler_max_ms": 3.0,
        "speedup_mean_vs_ulysses": 1.5,
        "tokens_per_gpu_s": 100.0,
        "scaling_efficiency": 0.5,
        "max_over_mean": 1.1,
        "worker_ms": [1.0, 2.0],
        "timeline": [operation, {**operation, "pass": "backward"}],
    }
    return figures | changed


def simulation(gpus: int = 16) -> dict:
    return {
        "corpus": {"name": "<mix>", "documents": 2},
        "model": {"name": "qwen3-8b"},
        "cluster": "hgx-h200",
        "seq_len": 1024,
        "steps": 1,
        "gpus": gpus,
        "dp": 2,
        "pp": 1,
        "cp": 8,
        "gbs": 4,
        "lengths": [{"begin": 1024, "documents": 2, "tokens": 2048, "attention_share": 1.0}],
        "methods": {
            "ulysses": method(),
            "libra": method(tokens_per_gpu_s=123.0),
            "none": {"skipped": "not here"},
        },
    }


def tune() -> dict:
    best = {
        "options": "--pool 2",
        "pool": 2,
        "block": 4096,
        "head_shards": 2,
        "chunks": 4,
        "tau": 0.03,
        "placer": "reserve",
        "home": "contiguous",
        "step_s": 2.0,
        "step_s_deviation": 0.1,
    }
    evenness = [{"pool": 1, "r_minus_1": 0.5}, {"pool": 2, "r_minus_1": 0.0}]
    report = {"best": best, "runners_up": [best], "evenness": evenness, "wanted_r_minus_1": 0.01}
    job = simulation()
    del job["methods"]
    return job | report


def paper() -> dict:
    row = {"what": "256K, P 8, full, all", "paper": 1.0, "faithful": 1.1, "shipped": None}
    result = {"title": "T", "unit": "x", "assumptions": "", "why": "Because.", "rows": [row]}
    return {"cluster": "hgx-h200", "figures": {"12": result, "15": result}}


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, report) -> str:
        path = self.folder / name
        path.write_text(report if isinstance(report, str) else json.dumps(report))
        return str(path)

    def titles(self, *reports: dict) -> list[str]:
        paths = [self.write(f"{i}.json", report) for i, report in enumerate(reports)]
        return [title for title, _, _ in charts_of(read_results(paths))]

    def test_each_kind_of_result_has_its_charts(self):
        self.assertIn("Sample lengths", self.titles(simulation()))
        self.assertIn("Best settings", self.titles(tune()))
        self.assertIn("Pool-size sweep (the paper's Figure 15)", self.titles(paper()))

    def test_several_simulations_make_a_scaling_curve(self):
        self.assertNotIn("Scaling", self.titles(simulation()))
        self.assertIn("Scaling", self.titles(simulation(16), simulation(32)))

    def test_methods_that_did_not_run_are_left_out(self):
        results = read_results([self.write("s.json", simulation())])
        charts = {title: chart for title, _, chart in charts_of(results)}
        figure = charts["Training throughput"]
        self.assertEqual(list(figure.data[0].y), ["libra", "ulysses"])
        self.assertEqual(list(figure.data[0].x), [123.0, 100.0])

    def test_the_page_is_self_contained_and_escapes_names(self):
        page = render(read_results([self.write("s.json", simulation())]))
        self.assertNotIn("<mix>", page)
        self.assertIn("&lt;mix&gt;", page)
        self.assertNotIn("<script src", page)
        self.assertNotIn("<link rel='stylesheet'", page)

    def test_what_is_no_result_is_refused_in_one_line(self):
        for name, text, wanted in (
            ("a.json", "{", "is not JSON"),
            ("b.json", "[]", "must be a JSON object"),
            ("c.json", "{}", "is no result of libra simulate, tune or paper"),
        ):
            with self.assertRaisesRegex(ResultError, wanted):
                read_results([self.write(name, text)])
        with self.assertRaisesRegex(ResultError, "No such file"):
            read_results([str(self.folder / "missing.json")])

    def test_the_command_writes_the_page_or_says_what_is_wrong(self):
        page = self.folder / "report.html"
        with contextlib.redirect_stdout(io.StringIO()):
            code = main([self.write("s.json", simulation()), "-o", str(page)])
        self.assertEqual(code, 0)
        self.assertTrue(page.read_text().startswith("<!doctype html>"))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(main([self.write("x.json", "{"), "-o", str(page)]), 2)
        self.assertTrue(errors.getvalue().startswith("libra.report: error: "))


if __name__ == "__main__":
    unittest.main()
