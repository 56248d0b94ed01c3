"""Rows that go over to Arrow as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from wavetank._frames import frame_of

if TYPE_CHECKING:
    import pandas

    from wavetank import _wavetank


class ArrowStream(Protocol):
    """Whatever offers Arrow's C stream: `pyarrow.table(x)`, `polars.DataFrame(x)` and DuckDB take it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Table:
    """Rows of the native half: a stream for whoever takes Arrow, a data frame for pandas."""

    def __init__(self, native: ArrowStream) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame; needs pandas and pyarrow (`pip install '.[pandas]'`)."""
        return frame_of(self)

    def __repr__(self) -> str:
        return repr(self._native)


class Requests(Table, Sequence[dict[str, Any]]):
    """One row per request that ended, in order of arrival."""

    _native: _wavetank.Requests

    def __len__(self) -> int:
        return len(self._native)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(at, slice):
            return [self._native[place] for place in range(*at.indices(len(self)))]
        try:
            return self._native[at]
        except OverflowError:
            raise IndexError(f"there is no request {at}") from None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self._native[place] for place in range(len(self)))


class Points(Table):
    """One row per point of a sweep, a column for each axis and metric."""

    _native: _wavetank.Points

    def __len__(self) -> int:
        return len(self._native)
