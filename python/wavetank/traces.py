"""Traces of requests as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wavetank import _check, _wavetank
from wavetank._check import PathLike
from wavetank.tables import Table


class Trace(Table):
    """The requests of a trace, read anew at every look: a stream for whoever takes Arrow, rows for a loop."""

    _native: _wavetank.Trace

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._native)


def read_trace(
    files: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    trace_block_size: int | None = None,
) -> Trace:
    """The requests of a trace in any of the formats of `wavetank list formats`, plain or compressed.

    Several files are one trace; `"format:path"` says what one is where that cannot be seen.
    """
    names = _check.traces("files", files)
    form = None if format is None else _check.text("format", format)
    size = trace_block_size
    if size is not None:
        size = _check.whole("trace_block_size", size, 1, 2**32 - 1)
    return Trace(_wavetank.Trace(names, format=form, trace_block_size=size))
