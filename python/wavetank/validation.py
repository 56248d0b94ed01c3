"""A measured run against its simulation."""

from __future__ import annotations

from wavetank import _check, _wavetank
from wavetank._check import PathLike
from wavetank._notices import notify
from wavetank.reports import ValidateReport


def validate(run: PathLike, *, tolerance: float | None = None) -> ValidateReport:
    """Simulate the measured run in a folder (run.json, workload.jsonl, profile/, measured.csv) and compare.

    With a `tolerance` in percent, `report.failure` says which statistic of TTFT, TPOT or E2E is off by more.
    """
    percent = None if tolerance is None else _check.number("tolerance", tolerance)
    report, table, failure = _wavetank.validate(_check.path("run", run), percent)
    notify(report.get("warnings", []))
    return ValidateReport(report, table, failure)
