"""Traces of requests as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wavetank import _check, _wavetank

if TYPE_CHECKING:
    import pandas


class Trace:
    """The requests of a trace, read anew at every look: a stream for whoever takes Arrow, rows for a loop."""

    def __init__(self, native: _wavetank.Trace) -> None:
        self._native = native

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._native)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame; needs pandas and pyarrow."""
        import pyarrow

        return pyarrow.table(self).to_pandas()

    def __repr__(self) -> str:
        return repr(self._native)


def read_trace(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    trace_block_size: int | None = None,
) -> Trace:
    """The requests of a trace in any of the formats of `wavetank list formats`, plain or compressed.

    Several files are one trace; `"format:path"` says what one is where that cannot be seen.
    """
    names = _check.paths("files", files)
    return Trace(_wavetank.Trace(names, format=format, trace_block_size=trace_block_size))
