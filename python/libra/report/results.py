"""Reading and sorting results: which kind of report each JSON file is."""

import json
from dataclasses import dataclass, field
from pathlib import Path


class ResultError(Exception):
    """A file that is no result of the program. One line: what, where, what would be right."""


@dataclass
class Results:
    """What was given, by kind."""

    simulations: list[dict] = field(default_factory=list)
    tunes: list[dict] = field(default_factory=list)
    papers: list[dict] = field(default_factory=list)

    @property
    def simulation(self) -> dict | None:
        """The one that is shown in full: the last."""
        return self.simulations[-1] if self.simulations else None


def read_results(paths: list[str]) -> Results:
    """Raises ResultError for a file that cannot be read, is not JSON, or of no known kind."""
    results = Results()
    for path in paths:
        report = _read_json(path)
        _place_for(results, report, path).append(report)
    return results


def _read_json(path: str) -> dict:
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path}: is not JSON: {error}") from error
    if not isinstance(report, dict):
        raise ResultError(f"{path}: must be a JSON object")
    return report


def _place_for(results: Results, report: dict, path: str) -> list[dict]:
    if "methods" in report:
        return results.simulations
    if "best" in report:
        return results.tunes
    if "figures" in report:
        return results.papers
    raise ResultError(f"{path}: is no result of libra simulate, tune or paper (with --json)")


def methods_of(simulation: dict) -> dict[str, dict]:
    """Those that ran, in the program's order."""
    return {
        name: figures for name, figures in simulation["methods"].items() if "skipped" not in figures
    }
