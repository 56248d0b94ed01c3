"""Reports: dictionaries with manners."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wavetank import _wavetank

if TYPE_CHECKING:
    import pandas


class Report(dict[str, Any]):
    """A report as the command writes it, with what notebooks want of it."""

    title = "wavetank"

    def to_dict(self) -> dict[str, Any]:
        """Without the manners."""
        return dict(self)

    def to_json(self) -> str:
        """As the command writes it, byte for byte."""
        return _wavetank.to_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what `wavetank compare` and `wavetank report` read."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    def to_html(self, title: str | None = None) -> str:
        """A page of its own that opens without a network."""
        return _wavetank.page(title or self.title, [(self._name(), self)])

    @property
    def plots(self) -> list[str]:
        """The names of its plots."""
        return _wavetank.plot_names([(self._name(), self)])

    def plot(self, name: str | None = None) -> Plot:
        """A plot of it: one of `plots`, the first unless it is named."""
        if name is None:
            name = self.plots[0]
        svg, png = _wavetank.plot(name, [(self._name(), self)])
        return Plot(name, svg, png)

    def _name(self) -> str:
        return "run"


class Plot:
    """A picture that notebooks show."""

    def __init__(self, name: str, svg: str, png: bytes) -> None:
        self.name = name
        self.svg = svg
        self.png = png

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as .svg or .png."""
        if os.fspath(path).endswith(".png"):
            with open(path, "wb") as file:
                file.write(self.png)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<wavetank.Plot: {self.name}>"


STATISTICS = ["mean", "min", "max", "std", "p50", "p75", "p90", "p95", "p99"]
LATENCIES = ["ttft_ms", "ttst_ms", "tpot_ms", "itl_ms", "e2e_latency_ms", "output_token_throughput_per_user"]


class ReplayReport(Report):
    """The report of a replay; `per_request` is a table of requests where it was captured."""

    title = "wavetank replay"

    def __init__(self, report: Mapping[str, Any], per_request: _wavetank.Requests | None = None) -> None:
        super().__init__(report)
        self.per_request = per_request

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers alone."""
        return {name: value for name, value in self.items() if isinstance(value, (int, float))}

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each latency, a column for each statistic."""
        import pandas

        rows = {
            name: {statistic: self.get(f"{statistic}_{name}") for statistic in STATISTICS} for name in LATENCIES
        }
        return pandas.DataFrame.from_dict(rows, orient="index", columns=STATISTICS)

    def __repr__(self) -> str:
        return f"<wavetank.ReplayReport: {self['completed_requests']} requests>"


class BenchReport(Report):
    """The report of a storage benchmark; `failure` says what did not go as planned."""

    title = "wavetank bench"

    def __init__(self, report: Mapping[str, Any], failure: str | None = None) -> None:
        super().__init__(report)
        self.failure = failure


class ValidateReport(Report):
    """How far a simulation is from a measured run; `failure` says what is too far."""

    title = "wavetank validate"

    def __init__(self, report: Mapping[str, Any], table: str, failure: str | None = None) -> None:
        super().__init__(report)
        self.table = table
        self.failure = failure

    def __repr__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table)}</pre>"


class SweepReport(Report):
    """The rows of a sweep; `points` is a table of them, `table` what the command shows."""

    title = "wavetank sweep"

    def __init__(self, report: Mapping[str, Any], points: _wavetank.Points, table: str) -> None:
        super().__init__(report)
        self.points = points
        self.table = table

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One for each point: its parameters, its metrics, what it is among others."""
        rows: list[dict[str, Any]] = self["rows"]
        return rows

    @property
    def search(self) -> dict[str, Any] | None:
        """What a search found, and what its answer rests on."""
        return self.get("search")

    def to_json(self) -> str:
        """As the command writes it, byte for byte."""
        return _wavetank.sweep_json(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each point, a column for each axis and metric; needs pandas and pyarrow."""
        import pyarrow

        return pyarrow.table(self.points).to_pandas()

    def __repr__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table)}</pre>"
