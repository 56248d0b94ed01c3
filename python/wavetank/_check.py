"""Arguments that never reach the core: refused by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from wavetank.errors import UsageError


def path(name: str, value: Any) -> str:
    """A path."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise UsageError(f"must be a path, not {value!r}", name)
    return text


def paths(name: str, value: Any) -> list[str]:
    """A path, or several."""
    if isinstance(value, (str, os.PathLike)):
        return [path(name, value)]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(f"must be a path or several, not {value!r}", name)
    return [path(name, one) for one in value]


def number(name: str, value: Any) -> float:
    """A number."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise UsageError(f"must be a number, not {value!r}", name)
    return float(value)


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value <= most:
        raise UsageError(f"must be a whole number from {least} to {most}, not {value!r}", name)
    return int(value)


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A dict."""
    if not isinstance(value, Mapping):
        raise UsageError(f"must be a dict, not {value!r}", name)
    return value


def function(name: str, value: Any) -> Any:
    """Something to call, or nothing."""
    if value is not None and not callable(value):
        raise UsageError(f"must be a function, not {value!r}", name)
    return value
