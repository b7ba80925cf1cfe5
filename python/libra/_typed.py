"""Arguments held to their annotations, so that one of a wrong type is an error that says what it
is, where, and what it must be, not whatever it breaks first."""

import functools
import inspect
import numbers
import types
import typing
from collections.abc import Iterable

from libra import _core

_WORDS = {int: "an int", float: "a float", str: "a str", bool: "True or False",
          type(None): "None"}


def typed(function):
    """A decorator. Annotations are of _WORDS, classes, iterables, and unions of those; what has
    none, or Any, may be anything."""
    signature = inspect.signature(function)
    where = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args, **keywords):
        try:
            given = signature.bind(*args, **keywords).arguments
        except TypeError:  # a name that is missing, or not there: Python says it well
            return function(*args, **keywords)
        for name, hint in _hints(function).items():
            if name in given and not _fits(given[name], hint):
                size = " of 64 bits" if isinstance(given[name], numbers.Integral) else ""
                _core.refuse(where, name, given[name], _words(hint, size))
        return function(*args, **keywords)

    return checked


@functools.cache
def _hints(function):
    return typing.get_type_hints(function)


def _kinds(hint):
    """Of a union, each."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _fits(value, hint):
    return any(_is_a(value, kind) for kind in _kinds(hint))


def _is_a(value, kind):
    if kind is typing.Any:
        return True
    if kind is int:  # numpy's too
        return isinstance(value, numbers.Integral) and -1 << 63 <= value < 1 << 64
    if kind is float:
        return isinstance(value, numbers.Real)
    if typing.get_origin(kind) is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, str)
    return isinstance(value, kind)


def _words(hint, size=""):
    return " or ".join(_word(kind) + size * (kind is int) for kind in _kinds(hint))


def _word(kind):
    return _WORDS.get(kind) or f"a {_name(kind)}"


def _name(kind, plural=""):
    if typing.get_origin(kind) is not Iterable:
        return kind.__name__ + plural
    items = _kinds(typing.get_args(kind)[0])
    return f"sequence{plural} of " + " or ".join(_name(item, "s") for item in items)
