"""The command: python -m libra.report RESULT.json... -o report.html"""

import argparse
import sys
from pathlib import Path

from libra.report import read_results, render
from libra.report.results import ResultError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m libra.report",
        description="One self-contained interactive page from results of libra simulate, tune and "
        "paper.",
    )
    parser.add_argument("results", nargs="+", metavar="RESULT.json", help="written with --json")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page")
    options = parser.parse_args(arguments)
    try:
        page = render(read_results(options.results))
        Path(options.output).write_text(page, encoding="utf-8")
    except (ResultError, OSError) as error:
        print(f"libra.report: error: {error}", file=sys.stderr)
        return 2
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
