"""Reports: dictionaries with manners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from wavetank import _check, _files, _markup, _wavetank
from wavetank._check import PathLike
from wavetank._frames import frame_with
from wavetank._markup import number, percent
from wavetank.pictures import Pictured, Runs
from wavetank.tables import Points, Requests

if TYPE_CHECKING:
    import pandas


class Document(dict[str, Any]):
    """A dictionary that can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Without the manners."""
        return dict(self)

    def to_json(self) -> str:
        """As JSON with sorted keys; of a report, what the command writes, byte for byte."""
        return _wavetank.to_json(self)

    def save(self, path: PathLike) -> None:
        """Write that to a file."""
        name, content = _check.path("path", path), self.to_json()
        _files.write(name, content.encode())


class Report(Pictured, Document):
    """A report as `wavetank compare` and `wavetank report` read it, with what notebooks want of it."""

    def _runs(self) -> Runs:
        return [("run", self)]

    def _repr_html_(self) -> str:
        return "".join([_markup.heading(self._headline()), *self._parts(), self._warned(), self._picture()])

    def _headline(self) -> str:
        return self.title

    def _parts(self) -> Iterator[str]:
        """HTML, piece by piece, between the first line and the picture."""
        yield from ()

    def _warned(self) -> str:
        return _markup.listing(f"Warning: {warning}" for warning in self.get("warnings", []))

    def _picture(self) -> str:
        names = self.plots
        return _markup.picture(self.plot(names[0]).svg, names[0]) if names else ""


STATISTICS = ["mean", "min", "max", "std", "median", "p75", "p90", "p95", "p99"]
LATENCIES = {
    "ttft_ms": "Time to first token (ms)",
    "ttst_ms": "Time to second token (ms)",
    "tpot_ms": "Time per output token (ms)",
    "itl_ms": "Inter-token latency (ms)",
    "e2e_latency_ms": "Request latency (ms)",
    "output_token_throughput_per_user": "Output tokens/s per user",
}
RATES = {
    "request_throughput_rps": "requests/s",
    "output_throughput_tok_s": "output tokens/s",
    "input_throughput_tok_s": "input tokens/s",
    "goodput_request_throughput_rps": "requests/s within the SLA",
}


SEEDED = ["mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "mean_e2e_latency_ms", "output_throughput_tok_s"]


class ReplayReport(Report):
    """The report of a replay; `per_request` is a table of requests where it was captured."""

    title = "wavetank replay"

    def __init__(self, report: Mapping[str, Any], per_request: _wavetank.Requests | None = None) -> None:
        super().__init__(report)
        self.per_request = None if per_request is None else Requests(per_request)

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers alone."""
        return {name: value for name, value in self.items() if type(value) in (int, float)}

    @property
    def coverage(self) -> dict[str, Any]:
        """What was captured besides the report."""
        captured = self.per_request is not None
        return {"capture_per_request": captured, "per_request_records": len(self.per_request or ())}

    @property
    def advice(self) -> dict[str, Any] | None:
        """What more and less of each thing would do, where that was asked for (`advise=True`)."""
        return self.get("advice")

    @property
    def planner(self) -> dict[str, Any] | None:
        """What the scaling policy did, where there was one: looks, changes with reasons, workers."""
        return self.get("scaling")

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each latency, a column for each statistic."""
        return frame_with(STATISTICS, [[name, *self._row(name)] for name in LATENCIES], index=["latency"])

    def __repr__(self) -> str:
        return f"<wavetank.ReplayReport: {self['completed_requests']} requests>"

    def _headline(self) -> str:
        simulation = self["plan"]["simulation"]
        fleet, decode = f"{simulation['num_workers']}", simulation["decode"]
        if decode is not None:
            fleet += f" prefill and {decode['num_workers']} decode"
        served, router = f"{self['completed_requests']:,}", simulation["router_mode"]
        return f"{self.title}: {served} requests, {fleet} workers, {router}"

    def _parts(self) -> Iterator[str]:
        rows = ([name, *map(number, self._row(key))] for key, name in LATENCIES.items())
        yield _markup.table(["", *STATISTICS], rows)
        rates = [f"{number(self[key])} {name}" for key, name in RATES.items() if key in self]
        reused = percent(self["prefix_cache_reused_ratio"])
        yield _markup.paragraph(f"{', '.join(rates)}; {reused} of prompt tokens were reused")
        yield _markup.paragraph(f"Where the time to the first token goes: {self._bottlenecks()}")
        if "seeds" in self:
            yield _over_seeds(self["seeds"])

    def _row(self, latency: str) -> list[float | None]:
        # The report has zeros where no request ended.
        known = self["completed_requests"] > 0
        return [self.get(f"{statistic}_{latency}") if known else None for statistic in STATISTICS]

    def _bottlenecks(self) -> str:
        parts = self["attribution"]["ttft"].items()
        shares = {_words(name): part["share_of_mean_ttft"] for name, part in parts}
        most = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])
        return ", ".join(f"{name} {percent(shares[name], 0)}" for name in most) or "nowhere"


def _words(key: str) -> str:
    return key.removesuffix("_ms").replace("_", " ")


def _over_seeds(seeds: Mapping[str, Any]) -> str:
    columns = ["mean", "min", "max", "std"]
    rows = ([name, *(number(seeds["metrics"][name][column]) for column in columns)] for name in SEEDED)
    return _markup.table([f"Over {len(seeds['values'])} seeds", *columns], rows)


WAITS = {
    "end_to_end_latency_ms": "end_to_end",
    "queue_wait_ms": "queue_wait",
    "storage_io_latency_ms": "storage_io",
    "generation_latency_ms": "generation",
}
PARTS = ["total", "wait", "service", "device", "host"]
GIB = 2**30
SPREAD = ["mean", "p50", "p95", "p99", "p999", "p9999"]


class BenchReport(Report):
    """The report of a storage benchmark; `failure` says what did not go as planned."""

    title = "wavetank bench"

    def __init__(self, report: Mapping[str, Any], failure: str | None = None) -> None:
        super().__init__(report)
        self.failure = failure

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each latency: of requests, and of reads and writes of each tier with their parts.

        `frame.loc[("storage", "read", "device"), "p99_ms"]`. What has no samples is NaN.
        """
        columns = ["operations", "bytes", "gib_per_s", *(f"{name}_ms" for name in SPREAD)]
        rows = [*self._requests(), *self._tiers()]
        return frame_with(columns, rows, index=["tier", "operation", "part"])

    def _requests(self) -> Iterator[list[Any]]:
        served = self["requests_completed"]
        for key, name in WAITS.items():
            yield ["requests", name, "total", served, None, None, *_spread(self["summary"][key], served)]

    def _tiers(self) -> Iterator[list[Any]]:
        for role, operation, lane, rate in self._lanes():
            count = lane["operations"]
            for part in PARTS:
                spread = _spread(lane[f"{part}_ms"], count)
                yield [role, operation, part, count, lane["bytes"], rate, *spread]

    def _lanes(self) -> Iterator[tuple[str, str, dict[str, Any], float | None]]:
        """Reads and writes of each tier, and how fast they were."""
        for tier in self["summary"]["tiers"]:
            for operation in ("read", "write"):
                yield tier["role"], operation, tier[f"{operation}s"], tier[f"{operation}_bandwidth_gbps"]

    def __repr__(self) -> str:
        return f"<wavetank.BenchReport: {self['requests_completed']} requests>"

    def _headline(self) -> str:
        plan, health = self["plan"], self["summary"]["cache_stats"]["storage_health"]
        who = f"{plan['model']['title']}, {plan['run']['users']} users"
        return f"{self.title}: {who}, storage assessment {health['overall_status']}"

    def _parts(self) -> Iterator[str]:
        summary = self["summary"]
        if self.failure:
            yield _markup.paragraph(f"Failed: {self.failure}")
        yield _markup.listing(_criterion(one) for one in summary["cache_stats"]["storage_health"]["criteria"])
        yield _markup.table(["", "value", "unit"], self._metrics())
        rows = ([_words(row[1]), *map(number, row[-len(SPREAD) :])] for row in self._requests())
        yield _markup.table(["Latency (ms)", *SPREAD], rows)
        spread = ["mean ms", "p50", "p95", "p99", "device p95", "wait p95"]
        yield _markup.table(["Tier", "operations", "GiB", "GiB/s", *spread], self._moved())
        yield _markup.paragraph(f"Cache: hit rate {percent(summary['cache_stats']['cache_hit_rate'])}")
        yield _markup.paragraph(f"Bottleneck: {summary['bottleneck']['sentence']}")

    def _metrics(self) -> Iterator[list[str]]:
        summary = self["summary"]
        metrics = {"decode_bytes_read": summary["decode_bytes_read"]}
        metrics |= {f"{name}_throughput": metric for name, metric in summary["throughput"].items()}
        for name, metric in metrics.items():
            yield [_words(name), number(metric["value"]), metric["unit"]]

    def _moved(self) -> Iterator[list[str]]:
        p95 = SPREAD.index("p95")
        for role, operation, lane, rate in self._lanes():
            count = lane["operations"]
            parts = (lane["total_ms"], lane["device_ms"], lane["wait_ms"])
            total, device, wait = (_spread(part, count) for part in parts)
            numbers = [count, lane["bytes"] / GIB, rate, *total[: p95 + 2], device[p95], wait[p95]]
            yield [f"{role} {operation}", *map(number, numbers)]


def _spread(latency: Mapping[str, float], samples: int) -> list[float | None]:
    """The report has zeros where there are no samples."""
    return [latency[name] if samples else None for name in SPREAD]


def _criterion(criterion: Mapping[str, Any]) -> str:
    if criterion["passed"] is None:
        return f"{criterion['name']}: {criterion['note']}"
    unit = criterion["unit"]
    found = percent(criterion["actual"]) if unit == "ratio" else f"{number(criterion['actual'])} {unit}"
    return f"{'✓' if criterion['passed'] else '✗'} {criterion['name']}: {found}"


class ValidateReport(Report):
    """How far a simulation is from a measured run; `failure` says what is too far."""

    title = "wavetank validate"

    def __init__(self, report: Mapping[str, Any], table: str, failure: str | None = None) -> None:
        super().__init__(report)
        self.table = table
        self.failure = failure

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each statistic of each metric: measured, simulated, and the relative error."""
        columns = ["measured", "simulated", "error"]
        rows = [[metric, statistic, *map(cell.get, columns)] for metric, statistic, cell in self._cells()]
        return frame_with(columns, rows, index=["metric", "statistic"])

    def _cells(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for metric, statistics in self["metrics"].items():
            for statistic, cell in statistics.items():
                yield metric, statistic, cell

    def _rows(self) -> Iterator[list[str]]:
        for metric, statistic, cell in self._cells():
            sides = map(number, (cell["measured"], cell["simulated"]))
            yield [f"{metric} {statistic}", *sides, percent(cell["error"], 2)]

    def __repr__(self) -> str:
        return self.table

    def _headline(self) -> str:
        run = self["run"]
        return f"{self.title}: {run['model']} on {run['hardware']}, {self['counts']['requests']:,} requests"

    def _parts(self) -> Iterator[str]:
        if self.failure:
            yield _markup.paragraph(f"Failed: {self.failure}")
        yield _markup.table(["Metric", "measured", "simulated", "error"], self._rows())
        if self["worst"]:
            yield _markup.paragraph(f"Worst: {self['worst']['name']}, {percent(self['worst']['error'], 2)}")


class SweepReport(Report):
    """The rows of a sweep; `points` is a table of them, `table` what the command shows."""

    title = "wavetank sweep"

    def __init__(self, report: Mapping[str, Any], points: _wavetank.Points, table: str) -> None:
        super().__init__(report)
        self.points = Points(points)
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
        return self.points.to_pandas()

    def __repr__(self) -> str:
        return self.table

    def _headline(self) -> str:
        return f"{self.title}: {len(self.rows):,} points"

    def _parts(self) -> Iterator[str]:
        yield f"<pre>{escape(self.table)}</pre>"
