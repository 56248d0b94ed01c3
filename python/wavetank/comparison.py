"""Results side by side: two simulations, or a simulation and a real benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wavetank import _check, _markup, _wavetank
from wavetank._check import PathLike
from wavetank._frames import frame_with
from wavetank._markup import number
from wavetank.errors import UsageError
from wavetank.reports import Document, Report

if TYPE_CHECKING:
    import pandas


class Comparison(Document):
    """Two sides, the metrics both have, and what differs in their plans; `failures` are conditions that are not kept."""

    def __init__(self, comparison: Mapping[str, Any], table: str, failures: list[str]) -> None:
        super().__init__(comparison)
        self.table = table
        self.failures = failures

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each metric that both sides have."""
        columns = ["before", "after", "change", "relative", "is_noise"]
        rows = [[row["metric"], *(row[column] for column in columns)] for row in self["rows"]]
        return frame_with(columns, rows, index=["metric"])

    def __repr__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        columns = ["Metric", *(side["name"] for side in self["sides"]), "change", "change %", ""]
        parts = [
            _markup.table(columns, map(_row, self["rows"])),
            _markup.listing(f"Failed: {failure}" for failure in self.failures),
            _markup.paragraph(f"{len(self['rows'])} metrics in both:"),
            _markup.listing(map(_label, self["sides"])),
        ]
        if self["plan"]:
            differences = _markup.listing(map(_difference, self["plan"]))
            parts += [_markup.paragraph("What differs in the plans:"), differences]
        return "".join(parts)


def _row(row: Mapping[str, Any]) -> list[str]:
    sign = "+" if row["change"] > 0 else ""
    relative = "N/A" if row["relative"] is None else f"{row['relative'] * 100:+.2f} %"
    values = [number(row["before"]), number(row["after"]), sign + number(row["change"]), relative]
    return [row["metric"], *values, "noise" if row["is_noise"] else ""]


def _label(side: Mapping[str, Any]) -> str:
    """What a side is, what to know about it, and how much of it could not be compared."""
    runs = f", {side['runs']} runs" if side["runs"] > 1 else ""
    remarks = f", and {', '.join(side['remarks'])}" if side["remarks"] else ""
    alone = f"; {len(side['alone'])} more in it alone" if side["alone"] else ""
    return f"{side['name']} is {side['format']}{runs}{remarks}{alone}"


def _difference(one: Mapping[str, Any]) -> str:
    return f"{one['path']}: {one['before']} → {one['after']}"


def compare(
    before: PathLike | Mapping[str, Any],
    after: PathLike | Mapping[str, Any],
    *,
    fail_if: str | Iterable[str] = (),
    within: str | Iterable[str] = (),
    names: tuple[str, str] = ("before", "after"),
) -> Comparison:
    """Compare two results.

    Each is a report, the file of one, a result of `vllm bench serve` or AIPerf (`wavetank list results`), or a
    directory of repeats. `fail_if="p99_ttft_ms > +5%"` and `within="5%"` are those of `wavetank compare`; what is not
    kept is in `failures`. Reports in memory are called by `names`.
    """
    called = [] if isinstance(names, str) else _check.texts("names", names)
    if len(called) != 2:
        raise UsageError(f"must be two texts, not {names!r}", "names")
    sides = (_side("before", before, called[0]), _side("after", after, called[1]))
    conditions, tolerances = _check.texts("fail_if", fail_if), _check.texts("within", within)
    return Comparison(*_wavetank.compare(sides, conditions, tolerances))


def _side(name: str, given: object, shown: str) -> str | tuple[str, dict[str, Any]]:
    if isinstance(given, Report):
        return shown, given
    if isinstance(given, Mapping):
        return shown, dict(given)
    return _check.path(name, given)
