"""Data frames, where the packages that make them are installed."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def needed(module: str) -> Any:
    """A package that is not needed for anything else."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        name = missing.name or module
        raise ImportError(f"data frames need {name}: pip install '.[pandas]'", name=name) from missing


def frame_of(stream: object) -> pandas.DataFrame:
    """What offers an Arrow stream, as a data frame."""
    needed("pandas")
    frame: pandas.DataFrame = needed("pyarrow").table(stream).to_pandas()
    return frame


def frame_with(columns: list[str], rows: list[list[Any]], *, index: list[str]) -> pandas.DataFrame:
    """Rows as a data frame; the first of their cells are its index, and what is missing is NaN."""
    # A column of `None` alone would be one of objects.
    cells = [[math.nan if cell is None else cell for cell in row] for row in rows]
    frame: pandas.DataFrame = needed("pandas").DataFrame(cells, columns=index + columns).set_index(index)
    return frame
