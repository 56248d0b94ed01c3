"""Sweeps and searches: many replays, on the threads of this machine or wherever an executor takes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal, Protocol

from wavetank import _check, _wavetank
from wavetank._check import PathLike
from wavetank._notices import notify
from wavetank.errors import UsageError
from wavetank.replay import Progress
from wavetank.reports import SweepReport

if TYPE_CHECKING:
    from typing import TypeAlias

    Where: TypeAlias = "Literal['local', 'ray'] | Executor"


def sweep(
    spec: Mapping[str, Any] | PathLike,
    *,
    output: PathLike | Iterable[PathLike] | None = None,
    threads: int | None = None,
    shard: str | None = None,
    fresh: bool = False,
    max_points: int | None = 100_000,
    executor: Where = "local",
    progress: Progress | None = None,
    ray_options: Mapping[str, Any] | None = None,
) -> SweepReport:
    """Run a sweep or a search: the TOML file of `wavetank sweep`, or a dict with the same keys.

    `sweep({"base": {"trace": "trace.jsonl"}, "axes": {"num_workers": [2, 4], "seed": range(5)}})`; the last
    axis is fastest, paths are relative to the file or to the working directory.

    `output` names files (.csv, .json, .parquet); beside the first one finished points are kept as they come,
    and a sweep that is run again goes on there, unless it is `fresh`. Without it nothing is written.

    `executor` is where points run: `"local"` on `threads` threads, `"ray"` as tasks of a Ray cluster with
    `ray_options`, or an executor of `concurrent.futures`. Rows are the same, byte for byte. `threads` is how
    many points are under way at a time. `progress(done, total)` is called now and then.
    """
    asked = dict(spec) if isinstance(spec, Mapping) else _check.path("spec", spec)
    wanted: _wavetank.WantedSweep = {
        "outputs": [] if output is None else _check.paths("output", output),
        "threads": None if threads is None else _check.whole("threads", threads, 1, 65_535),
        "shard": None if shard is None else _check.text("shard", shard),
        "fresh": _check.truth("fresh", fresh),
        "max_points": None if max_points is None else _check.whole("max_points", max_points, 0, 2**63),
    }
    _check.function("progress", progress)
    # After all else: it may start a cluster.
    runner = _runner(executor, ray_options)
    if runner is not None and threads is None:
        wanted["threads"] = runner.in_flight
    report, points, table = _wavetank.sweep(asked, wanted, runner, progress)
    notify(report["warnings"])
    return SweepReport(report, points, table)


class Answer(Protocol):
    """What `run_point` will say of a job; a future of `concurrent.futures` is one."""

    def add_done_callback(self, tell: Callable[[Any], object], /) -> None:
        """Call `tell` once it is there."""

    def result(self) -> str:
        """Give it, or raise why there is none."""

    def cancel(self) -> object:
        """Give it up."""


class Runner(Protocol):
    """Takes jobs somewhere. `in_flight` is how many it wants to have at a time."""

    in_flight: int

    def submit(self, job: str, inputs: dict[str, str]) -> Answer:
        """Take a job, whose inputs are paths with hashes of what is in them."""


def _runner(executor: Where, ray_options: Mapping[str, Any] | None) -> Runner | None:
    if executor == "ray":
        options = {} if ray_options is None else _check.mapping("ray_options", ray_options)
        from wavetank import _ray

        return _ray.Cluster(dict(options))
    if ray_options is not None:
        raise UsageError('belongs to executor="ray"', "ray_options")
    if executor == "local":
        return None
    if isinstance(executor, Executor):
        return _Pool(executor)
    known = '"local", "ray" or a concurrent.futures.Executor'
    raise UsageError(f"must be {known}, not {executor!r}", "executor")


class _Pool:
    """An executor whose workers see the files of this machine."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.in_flight = 2 * (os.cpu_count() or 1)

    def submit(self, job: str, inputs: dict[str, str]) -> Answer:
        return self._executor.submit(_wavetank.run_point, job, inputs)
