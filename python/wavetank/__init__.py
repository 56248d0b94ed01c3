"""A wave tank for LLM serving: traces and storage loads in, latency, throughput and cache reuse out.

>>> import wavetank
>>> report = wavetank.run_trace_replay("trace.jsonl", num_workers=4, router_mode="kv_router")
>>> report["p99_ttft_ms"]
"""

from wavetank._wavetank import __version__
from wavetank.bench import run_bench
from wavetank.client import Client
from wavetank.comparison import Comparison, compare
from wavetank.errors import (
    Error,
    InputError,
    IoError,
    StuckError,
    UnsupportedError,
    UsageError,
    WavetankWarning,
)
from wavetank.pictures import Page, Plot, page
from wavetank.replay import run_synthetic_trace_replay, run_trace_replay
from wavetank.reports import BenchReport, ReplayReport, Report, SweepReport, ValidateReport
from wavetank.sweeps import sweep
from wavetank.tables import Points, Requests
from wavetank.traces import Trace, read_trace
from wavetank.validation import validate

__all__ = [
    "BenchReport",
    "Client",
    "Comparison",
    "Error",
    "InputError",
    "IoError",
    "Page",
    "Plot",
    "Points",
    "ReplayReport",
    "Report",
    "Requests",
    "StuckError",
    "SweepReport",
    "Trace",
    "UnsupportedError",
    "UsageError",
    "ValidateReport",
    "WavetankWarning",
    "__version__",
    "compare",
    "page",
    "read_trace",
    "run_bench",
    "run_synthetic_trace_replay",
    "run_trace_replay",
    "sweep",
    "validate",
]
