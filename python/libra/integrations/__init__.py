"""Where Libra's attention goes into other frameworks; each module imports its own."""

from importlib import import_module as _import_module

__all__ = ["megatron", "torchtitan", "transformers"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'libra.integrations' has no attribute {name!r}")
    return _import_module(f"libra.integrations.{name}")
