"""Replays of request traces and synthetic loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any, Literal, TypeAlias

from wavetank import _check, _wavetank
from wavetank._check import PathLike
from wavetank._notices import notify
from wavetank.errors import UsageError
from wavetank.reports import ReplayReport

JsonArgs: TypeAlias = "Mapping[str, Any] | str"
Progress: TypeAlias = Callable[[int, "int | None"], object]


def run_trace_replay(
    trace_files: PathLike | Iterable[PathLike],
    *,
    extra_engine_args: JsonArgs | None = None,
    prefill_engine_args: JsonArgs | None = None,
    decode_engine_args: JsonArgs | None = None,
    router_config: JsonArgs | None = None,
    aic_perf_config: Mapping[str, Any] | None = None,
    num_workers: int = 1,
    num_prefill_workers: int = 1,
    num_decode_workers: int = 1,
    replay_concurrency: int | None = None,
    replay_mode: Literal["offline", "online"] = "offline",
    router_mode: str = "round_robin",
    arrival_speedup_ratio: float = 1.0,
    trace_block_size: int | None = None,
    trace_format: str | None = None,
    trace_shared_prefix_ratio: float = 0.0,
    trace_num_prefix_groups: int = 0,
    report_jsonl_path: PathLike | None = None,
    max_sim_time_ms: float | None = None,
    model_name: str | None = None,
    sla_ttft_ms: float | None = None,
    sla_itl_ms: float | None = None,
    sla_e2e_ms: float | None = None,
    planner_config: Any | None = None,
    benchmark_granularity: int = 8,
    capture_per_request: bool = False,
    capture_planner_details: bool = True,
    seeds: int | None = None,
    advise: bool | str = False,
    price: Mapping[str, float | str] | str | None = None,
    progress: Progress | None = None,
    **flags: Any,
) -> ReplayReport:
    """Replay a trace through simulated engines.

    `trace_files` is a path, `"format:path"`, or several that are one trace. Engine and router arguments are
    dicts, JSON texts or `"@file.json"`. `flags` are further flags of `wavetank replay` by name: `timing`,
    `fill`, `seed`, `clamp_input`, `kv_link_gbps`, `autoscale` and `autoscale_config`, ... `tiers` is a list of
    texts as of `--tier`, or dicts with their parts: `tiers=["cpu=64GiB:32GB/s"]`.

    `capture_per_request` keeps a table of requests (`report.per_request`), `seeds` runs that many seeds,
    `progress(done, total)` is called now and then. `advise` replays also with more and with less of each thing
    and adds what that is worth (`report["advice"]`), by `p99_ttft_ms` or the metric it names; `price` has
    prices for it, such as `{"gpu_hour": 2.5}`.
    """
    given = _changed(_TRACE_DEFAULTS, locals())
    files = _check.traces("trace_files", trace_files)
    return _replay({"trace": files, **given}, flags, locals())


def run_synthetic_trace_replay(
    input_tokens: int,
    output_tokens: int,
    request_count: int,
    *,
    extra_engine_args: JsonArgs | None = None,
    prefill_engine_args: JsonArgs | None = None,
    decode_engine_args: JsonArgs | None = None,
    router_config: JsonArgs | None = None,
    aic_perf_config: Mapping[str, Any] | None = None,
    num_workers: int = 1,
    num_prefill_workers: int = 1,
    num_decode_workers: int = 1,
    replay_concurrency: int | None = None,
    replay_mode: Literal["offline", "online"] = "offline",
    router_mode: str = "round_robin",
    arrival_speedup_ratio: float = 1.0,
    request_rate: float | None = None,
    arrival_interval_ms: float | None = None,
    arrival_seed: int = 42,
    turns_per_session: int = 1,
    shared_prefix_ratio: float = 0.0,
    num_prefix_groups: int = 0,
    inter_turn_delay_ms: float = 0.0,
    report_jsonl_path: PathLike | None = None,
    max_sim_time_ms: float | None = None,
    model_name: str | None = None,
    sla_ttft_ms: float | None = None,
    sla_itl_ms: float | None = None,
    sla_e2e_ms: float | None = None,
    planner_config: Any | None = None,
    benchmark_granularity: int = 8,
    capture_per_request: bool = False,
    capture_planner_details: bool = True,
    seeds: int | None = None,
    advise: bool | str = False,
    price: Mapping[str, float | str] | str | None = None,
    progress: Progress | None = None,
    **flags: Any,
) -> ReplayReport:
    """Replay requests of fixed lengths through simulated engines; see `run_trace_replay`.

    With several turns, `request_count` counts sessions.
    """
    given = _changed(_SYNTHETIC_DEFAULTS, locals())
    lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens, "request_count": request_count}
    return _replay({**lengths, **given}, flags, locals())


# What is not a flag of the command: handled here, or without effect by itself.
_OWN = {"trace_files", "input_tokens", "output_tokens", "request_count", "aic_perf_config", "report_jsonl_path"}
_OWN |= {"max_sim_time_ms", "capture_per_request", "capture_planner_details", "seeds", "progress"}
_OWN |= {"advise", "price"}


def _defaults(function: Callable[..., ReplayReport]) -> dict[str, Any]:
    defaults = function.__kwdefaults__ or {}
    return {name: default for name, default in defaults.items() if name not in _OWN}


_TRACE_DEFAULTS = _defaults(run_trace_replay)
_SYNTHETIC_DEFAULTS = _defaults(run_synthetic_trace_replay)


def _changed(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that say something: a default is no flag that was typed, and may not be in the way."""
    return {
        name: given[name]
        for name, default in defaults.items()
        if given[name] is not default and not _same(given[name], default)
    }


def _same(value: Any, default: Any) -> bool:
    """Whether a value is the default: numbers of any kind by what they are, but no truth is a number."""
    if isinstance(default, str):
        return isinstance(value, str) and value == default
    if isinstance(default, (bool, type(None))) or isinstance(value, bool):
        return value is default
    return isinstance(value, Number) and bool(value == default)


# Other names of a flag.
_ALIASES = {"trace_file": "trace", "trace_files": "trace", "tiers": "tier"}


def _add(flags: dict[str, Any], name: str, value: Any) -> None:
    """One more flag, unless it is there under this name or another of its names."""
    # What is behind a dot is a key inside the flag, with a spelling of its own.
    flag, dot, key = name.partition(".")
    flag = flag.replace("-", "_")
    flag = _ALIASES.get(flag, flag) + dot + key
    if flags.get(flag) is None:
        flags[flag] = value
    elif value is not None:
        raise UsageError("is given twice", name)


def _replay(named: dict[str, Any], flags: Mapping[str, Any], given: Mapping[str, Any]) -> ReplayReport:
    if given["planner_config"] is not None:
        named["planner_config"] = str(given["planner_config"])
    if given["max_sim_time_ms"] is not None:
        seconds = _check.number("max_sim_time_ms", given["max_sim_time_ms"]) / 1000.0
        _add(named, "max_sim_time_seconds", seconds)
    if given["aic_perf_config"] is not None:
        for name, value in _check.mapping("aic_perf_config", given["aic_perf_config"]).items():
            _add(named, name if name.startswith("aic_") else f"aic_{name}", value)
    for name, value in flags.items():
        _add(named, name, value)
    seeds, jsonl = given["seeds"], given["report_jsonl_path"]
    wanted: _wavetank.Wanted = {
        "seeds": None if seeds is None else _check.whole("seeds", seeds, 1, 10_000),
        "capture": _check.truth("capture_per_request", given["capture_per_request"]),
        "jsonl": None if jsonl is None else _check.path("report_jsonl_path", jsonl),
        "advise": _goal(given["advise"]),
        "price": _prices(given["price"]),
    }
    report, requests = _wavetank.replay(named, wanted, _check.function("progress", given["progress"]))
    notify(report["warnings"])
    return ReplayReport(report, requests)


def _goal(advise: Any) -> str | None:
    """The metric that advice goes by, where it is wanted."""
    if isinstance(advise, str):
        return _check.text("advise", advise)
    return "p99_ttft_ms" if _check.truth("advise", advise) else None


def _prices(price: Any) -> str | None:
    """Prices as the command takes them."""
    if price is None or isinstance(price, str):
        return None if price is None else _check.text("price", price)
    prices = _check.mapping("price", price)
    return ",".join(f"{name}={_price(name, value)}" for name, value in prices.items())


def _price(name: str, value: Any) -> str:
    return value if isinstance(value, str) else repr(_check.number(f"price[{name!r}]", value))
