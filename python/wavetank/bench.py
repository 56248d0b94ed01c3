"""The storage benchmark: real bytes through GPU, RAM and storage tiers under simulated LLM users."""

from __future__ import annotations

from typing import Any

from wavetank import _check, _wavetank
from wavetank._notices import notify
from wavetank.replay import Progress
from wavetank.reports import BenchReport


def run_bench(*, progress: Progress | None = None, **flags: Any) -> BenchReport:
    """Run `wavetank bench` with its flags by name and give its report.

    `run_bench(model="llama3.1-8b", num_users=50, duration=30, cpu_mem_gb=4, gpu_mem_gb=0, cache_dir="/mnt/nvme")`.
    A flag without a value is `True`, one that may be given again a list. `progress(done, total)` is called
    with milliseconds of the benchmark's time.
    """
    report, failure = _wavetank.bench(flags, _check.function("progress", progress))
    notify(report.get("warnings", []))
    return BenchReport(report, failure)
