"""Arguments that never reach the core: refused by name."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from wavetank.errors import UsageError

PathLike: TypeAlias = "str | os.PathLike[str]"


def path(name: str, value: Any) -> str:
    """A path."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise UsageError(f"must be a path, not {_shown(value)}", name)
    return text


def paths(name: str, value: Any) -> list[str]:
    """A path, or several."""
    if isinstance(value, (str, os.PathLike)):
        return [path(name, value)]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(f"must be a path or several, not {_shown(value)}", name)
    return [path(name, one) for one in value]


def text(name: str, value: Any) -> str:
    """A text that can be written down."""
    if not isinstance(value, str):
        raise UsageError(f"must be a text, not {_shown(value)}", name)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"is a text that is not Unicode: {value!a}", name) from None
    return value


def texts(name: str, value: Any) -> list[str]:
    """A text, or several."""
    if isinstance(value, str):
        return [text(name, value)]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(f"must be a text or several, not {_shown(value)}", name)
    return [text(name, one) for one in value]


def traces(name: str, value: Any) -> list[str]:
    """A path or several, which may have a format before them and so are texts."""
    return [text(name, one) for one in paths(name, value)]


def truth(name: str, value: Any) -> bool:
    """True or false, and nothing that only counts as one of them."""
    # NumPy's is another class, called so.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise UsageError(f"must be True or False, not {_shown(value)}", name)
    return bool(value)


def number(name: str, value: Any) -> float:
    """A number."""
    try:
        if isinstance(value, (bool, str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"must be a number, not {_shown(value)}", name) from None


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not least <= number <= most:
        raise UsageError(f"must be a whole number from {least} to {most}, not {_shown(value)}", name)
    return number


def _shown(value: Any) -> str:
    """A value as an error shows it, also one that Python does not write out for its length."""
    try:
        shown = repr(value)
    except ValueError:
        return "one of very many digits"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A dict whose keys are texts."""
    if not isinstance(value, Mapping):
        raise UsageError(f"must be a dict, not {_shown(value)}", name)
    for key in value:
        if not isinstance(key, str):
            raise UsageError(f"keys must be texts, not {key!r}", name)
    return value


def function(name: str, value: Any) -> Any:
    """Something to call, or nothing."""
    if value is not None and not callable(value):
        raise UsageError(f"must be a function, not {_shown(value)}", name)
    return value
