"""Writes docs/python_reference.md from the docstrings: PYTHONPATH=build/release/python python
scripts/python_reference.py [FILE]."""

import inspect
import operator
import pathlib
import re
import sys

import libra
import libra.integrations.megatron
import libra.integrations.torchtitan
import libra.integrations.transformers
import libra.kernels

HEAD = """# The Python package, name by name

From the docstrings, by `scripts/python_reference.py`; a test keeps it current. How it fits
together: [python.md](python.md).
"""
ADAPTERS = {
    "libra.kernels": ["Kernels", "Kernels.forward", "Kernels.backward", "FlashAttention"],
    "libra.integrations.transformers": ["register"],
    "libra.integrations.megatron": ["CoreAttention", "use_libra", "packed_seq_params"],
    "libra.integrations.torchtitan": ["LibraAttention", "use_libra", "with_plan"],
}


def doc_of(thing):
    return inspect.cleandoc(thing.__doc__ or "")


def signature_of(thing):
    if getattr(thing, "_is_protocol", False):  # it is not called
        return ""
    try:
        return str(inspect.signature(thing))
    except (ValueError, TypeError):  # what C++ binds says in its first line, or its stubs
        return ""


def members_of(thing):
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return
    for name, member in vars(thing).items():
        if name.startswith("_") or not getattr(member, "__doc__", None):
            continue
        yield name, member, isinstance(member, property)


def entry(title, thing, level):
    code = title + ("" if isinstance(thing, property) else signature_of(thing))
    lines = [f"{'#' * level} {title}", ""]
    if "(" in code:
        lines += ["    " + code, ""]
    return [*lines, *block(doc_of(thing)), ""]


def block(doc):
    """Docstrings as they are: indented, they stay."""
    return ["    " + line if line else "" for line in doc.splitlines()]


def reference():
    lines = [HEAD]
    for name in sorted(libra.__all__, key=str.lower):
        thing = getattr(libra, name)
        lines += entry(f"libra.{name}", thing, 2)
        for member, value, is_property in members_of(thing):
            lines += entry(f"{name}.{member}", value, 3)
    for module, names in ADAPTERS.items():
        lines += [f"## {module}", "", *block(doc_of(sys.modules[module])), ""]
        for name in names:
            lines += entry(f"{module.split('.')[-1]}.{name}",
                           operator.attrgetter(name)(sys.modules[module]), 3)
    return in_short("\n".join(lines).rstrip() + "\n")


def in_short(text):
    """Types without the modules that they are in."""
    return re.sub(r"\b(libra\.(?!kernels)\w+|collections\.abc)\.(?=[A-Z])", "", text)


if __name__ == "__main__":
    default = pathlib.Path(__file__).resolve().parents[1] / "docs/python_reference.md"
    (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default).write_text(
        reference(), encoding="utf-8")
