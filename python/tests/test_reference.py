"""docs/python_reference.md is what the docstrings say."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_reference_is_current():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts/python_reference.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.reference() == (ROOT / "docs/python_reference.md").read_text(encoding="utf-8"), (
        "run scripts/python_reference.py")
