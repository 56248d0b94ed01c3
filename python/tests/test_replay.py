"""Replays from Python are those of the command."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow
import pytest

import wavetank

DISAGGREGATED = {
    "router_mode": "kv_router",
    "num_prefill_workers": 2,
    "num_decode_workers": 2,
    "prefill_engine_args": {"worker_type": "prefill", "kv_bytes_per_token": 131072, "kv_transfer_bandwidth": 50},
    "decode_engine_args": {"worker_type": "decode"},
}
TRACES = [
    {"num_workers": 4},
    {"num_workers": 4, "router_mode": "kv_router", "router_config": {"router_temperature": 0.5}, "seed": 7},
    DISAGGREGATED,
    {"num_workers": 2, "extra_engine_args": {"engine_type": "sglang", "block_size": 64}},
    {"replay_concurrency": 16, "concurrency_unit": "sessions"},
    {"num_workers": 4, "arrival_speedup_ratio": 5.0, "sla_ttft_ms": 200, "sla_itl_ms": 10.0},
    {"max_sim_time_ms": 30_000},
    {"num_workers": 2, "timing": "grid:llama31-8b-h200-tp1-bf16"},
    {"autoscale": "load", "autoscale_config": {"interval_seconds": 5, "max": 4}, "arrival_speedup_ratio": 5.0},
]
SYNTHETIC = [
    {},
    {"request_rate": 4.0, "arrival_seed": 3, "num_workers": 2},
    {"turns_per_session": 3, "shared_prefix_ratio": 0.5, "num_prefix_groups": 8, "inter_turn_delay_ms": 250},
]


def flags_of(arguments: dict) -> list[str]:
    """The words of the command for the same arguments."""
    words = []
    for name, value in arguments.items():
        if name == "max_sim_time_ms":
            name, value = "max_sim_time_seconds", value / 1000
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return words


def run_command(command: str, folder: Path, *words: str) -> str:
    report = folder / "report.json"
    subprocess.run([command, "replay", *words, "--report-json", report], check=True, capture_output=True)
    return report.read_text()


def without_wall(text: str) -> str:
    """A report's text without the one key that differs between two runs."""
    lines = text.splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if line.startswith('  "wall": {'))
    end = next(at for at in range(begin, len(lines)) if lines[at].startswith("  }"))
    return "".join(lines[:begin] + lines[end + 1 :])


@pytest.mark.filterwarnings("ignore::wavetank.WavetankWarning")
@pytest.mark.parametrize("arguments", TRACES, ids=lambda arguments: ",".join(arguments))
def test_a_trace_is_replayed_as_by_the_command(arguments, examples, command, tmp_path):
    trace = examples / "conversation.jsonl"
    report = wavetank.run_trace_replay(trace, **arguments)
    written = run_command(command, tmp_path, str(trace), *flags_of(arguments))
    assert without_wall(report.to_json()) == without_wall(written)


@pytest.mark.filterwarnings("ignore::wavetank.WavetankWarning")
@pytest.mark.parametrize("arguments", SYNTHETIC, ids=lambda arguments: ",".join(arguments) or "plain")
def test_a_synthetic_load_is_replayed_as_by_the_command(arguments, command, tmp_path):
    report = wavetank.run_synthetic_trace_replay(512, 32, 60, **arguments)
    lengths = ["--input-tokens", "512", "--output-tokens", "32", "--request-count", "60"]
    written = run_command(command, tmp_path, *lengths, *flags_of(arguments))
    assert without_wall(report.to_json()) == without_wall(written)


def test_seeds_are_those_of_the_command(examples, command, tmp_path):
    trace = examples / "conversation.jsonl"
    arguments = {"num_workers": 4, "router_mode": "random"}
    report = wavetank.run_trace_replay(trace, seeds=3, **arguments)
    written = run_command(command, tmp_path, str(trace), "--seeds", "3", *flags_of(arguments))
    assert report["seeds"]["values"] == [42, 43, 44]
    assert without_wall(report.to_json()) == without_wall(written)


def test_tiers_are_those_of_the_command(examples, command, tmp_path):
    """Broken by: texts or dicts that mean another tier here, or an alias that is lost on the way."""
    trace = examples / "conversation.jsonl"
    engine = {"kv_bytes_per_token": 131072, "num_gpu_blocks": 600}
    disk = {"name": "disk", "capacity": "1TiB", "medium": "100us+5GB/s"}
    report = wavetank.run_trace_replay(trace, extra_engine_args=engine, tiers=["cpu=8GiB:32GB/s", disk])
    tiers = ["--tier", "cpu=8GiB:32GB/s", "--tier", "disk=1TiB:100us+5GB/s"]
    written = run_command(command, tmp_path, str(trace), "--extra-engine-args", json.dumps(engine), *tiers)
    assert [tier["name"] for tier in report["tiers"]["tiers"]] == ["cpu", "disk"]
    assert without_wall(report.to_json()) == without_wall(written)
    with pytest.raises(wavetank.UsageError, match="is given twice"):
        wavetank.run_trace_replay(trace, tiers=["a=1G:1GB/s"], tier=["a=1G:1GB/s"])


def test_the_module_is_the_command(examples, tmp_path):
    words = [str(examples / "single_turn.jsonl"), "--report-json", str(tmp_path / "r.json")]
    done = subprocess.run([sys.executable, "-m", "wavetank.replay", *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Time to First Token" in done.stdout
    refused = subprocess.run([sys.executable, "-m", "wavetank.replay", "--nope"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--nope" in refused.stderr


def test_signatures_are_the_references():
    """Names and defaults of the reference, of which `None` finds the format by itself here."""
    common = {
        "extra_engine_args": None, "prefill_engine_args": None, "decode_engine_args": None,
        "router_config": None, "aic_perf_config": None, "num_workers": 1, "num_prefill_workers": 1,
        "num_decode_workers": 1, "replay_concurrency": None, "replay_mode": "offline",
        "router_mode": "round_robin", "arrival_speedup_ratio": 1.0, "model_name": None, "sla_ttft_ms": None,
        "sla_itl_ms": None, "sla_e2e_ms": None, "planner_config": None, "benchmark_granularity": 8,
    }  # fmt: skip
    trace = {
        "trace_block_size": None, "trace_format": None, "trace_shared_prefix_ratio": 0.0,
        "trace_num_prefix_groups": 0, "report_jsonl_path": None, "max_sim_time_ms": None,
        "capture_per_request": False, "capture_planner_details": True,
    }  # fmt: skip
    synthetic = {
        "request_rate": None, "arrival_interval_ms": None, "arrival_seed": 42, "turns_per_session": 1,
        "shared_prefix_ratio": 0.0, "num_prefix_groups": 0, "inter_turn_delay_ms": 0.0,
    }  # fmt: skip
    for function, first, expected in [
        (wavetank.run_trace_replay, ["trace_files"], common | trace),
        (wavetank.run_synthetic_trace_replay, ["input_tokens", "output_tokens", "request_count"], common | synthetic),
    ]:
        parameters = inspect.signature(function).parameters
        positional = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert positional == first
        assert {name: parameters[name].default for name in expected} == expected


def test_requests_are_lines_tables_and_dicts(examples, command, tmp_path):
    trace = examples / "conversation.jsonl"
    lines = tmp_path / "ours.jsonl"
    report = wavetank.run_trace_replay(trace, num_workers=2, capture_per_request=True, report_jsonl_path=lines)
    theirs = tmp_path / "theirs.jsonl"
    run_command(command, tmp_path, str(trace), "--num-workers", "2", "--per-request-jsonl", str(theirs))
    assert lines.read_bytes() == theirs.read_bytes()
    rows = [json.loads(line) for line in theirs.read_text().splitlines()]
    requests = report.per_request
    assert len(requests) == len(rows) == report["completed_requests"] == 500
    assert [requests[at] for at in range(len(requests))] == rows
    assert requests[-1] == rows[-1]
    with pytest.raises(IndexError):
        requests[500]
    table = pyarrow.table(requests)
    assert table.to_pylist() == [{name: row.get(name) for name in table.column_names} for row in rows]
    assert set(table.column_names) == set(rows[0])


def test_a_default_is_one_in_any_type(examples, need):
    """Broken by: a default that counts as a flag that was typed because it is another kind of number."""
    numpy, trace = need("numpy"), examples / "single_turn.jsonl"
    plain = wavetank.run_trace_replay(trace)["plan"]
    for zero in (0, numpy.float64(0.0), numpy.int64(0)):
        ours = {"trace_shared_prefix_ratio": zero, "trace_num_prefix_groups": zero}
        assert wavetank.run_trace_replay(trace, **ours)["plan"] == plain
    with pytest.raises(wavetank.UsageError, match="trace_shared_prefix_ratio: belongs to"):
        wavetank.run_trace_replay(trace, trace_shared_prefix_ratio=numpy.float64(0.5))
    with pytest.raises(wavetank.UsageError, match="num_workers.*not true"):
        wavetank.run_trace_replay(trace, num_workers=True)
    synthetic = wavetank.run_synthetic_trace_replay(100, 4, 5)["plan"]
    same = {"arrival_seed": numpy.int64(42), "turns_per_session": 1.0, "inter_turn_delay_ms": 0}
    assert wavetank.run_synthetic_trace_replay(100, 4, 5, **same)["plan"] == synthetic


def test_nothing_is_captured_unless_asked(examples):
    assert wavetank.run_trace_replay(examples / "single_turn.jsonl").per_request is None


def test_several_files_are_one_trace(examples, tmp_path):
    text = (examples / "single_turn.jsonl").read_text().splitlines(keepends=True)
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    parts[0].write_text("".join(text[:100]))
    parts[1].write_text("".join(text[100:]))
    whole = wavetank.run_trace_replay(examples / "single_turn.jsonl")
    both = wavetank.run_trace_replay(iter(parts))
    assert both.summary == whole.summary


def test_progress_is_told_up_to_the_end(examples):
    seen = []
    report = wavetank.run_trace_replay(
        examples / "conversation.jsonl", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (report["completed_requests"], 500)
    assert seen == sorted(seen)


def test_an_exception_of_the_watcher_ends_the_run(examples):
    def watch(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        wavetank.run_trace_replay(
            examples / "conversation.jsonl", replay_mode="online", num_workers=4, progress=watch
        )


def test_warnings_are_pythons_and_name_the_caller(examples):
    with pytest.warns(wavetank.WavetankWarning, match="has no effect") as caught:
        wavetank.run_trace_replay(examples / "single_turn.jsonl", router_config={"router_temperature": 0.1})
    assert {warning.filename for warning in caught} == {__file__}


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_hundred_runs_do_not_grow(examples):
    """Broken by: reports, tables or threads that are kept. One report with its table is about 2 MiB."""

    def run():
        report = wavetank.run_trace_replay(
            examples / "conversation.jsonl", num_workers=4, capture_per_request=True, progress=lambda *_: None
        )
        pyarrow.table(report.per_request)

    for _ in range(20):
        run()
    before, threads = resident(), threading.active_count()
    for _ in range(100):
        run()
    assert resident() - before < 16 << 20
    assert threading.active_count() == threads


def test_two_threads_run_at_the_same_time(examples):
    """Each run waits, in its middle, until the other is in its middle too."""
    both = threading.Barrier(2, timeout=60)
    results = {}

    def run(name):
        met = []

        def watch(done, total):
            if not met:
                met.append(both.wait())

        results[name] = wavetank.run_trace_replay(examples / "conversation.jsonl", num_workers=4, progress=watch)

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results["a"].summary == results["b"].summary


def test_others_run_meanwhile():
    """Broken by: an interpreter that is held while the simulation runs. Another thread takes turns all along."""
    turns, done = [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = time.perf_counter()
    wavetank.run_synthetic_trace_replay(4000, 200, 20_000, num_workers=4, replay_concurrency=64)
    after = time.perf_counter()
    done.set()
    counter.join()
    inside = [turn for turn in turns if before < turn < after]
    longest = max(b - a for a, b in zip([before, *inside], [*inside, after]))
    assert longest < (after - before) / 2


INTERRUPTED = """
import sys, wavetank
def watch(done, total):
    print("running", flush=True)
try:
    wavetank.run_synthetic_trace_replay(100, 5000, 50, replay_mode="online", progress=watch)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_is_heard():
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.splitlines()[-1] == "interrupted"
    assert child.returncode == 0


def test_advice_is_that_of_the_command(examples, command, tmp_path):
    """Broken by: a price or a metric that is not handed on, or advice that is not in the report."""
    trace = str(examples / "conversation.jsonl")
    calls: list[tuple[int, int | None]] = []
    report = wavetank.run_trace_replay(
        trace, num_workers=2, advise="mean_ttft_ms", price={"gpu_hour": 2.5},
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    words = [trace, "--num-workers", "2", "--advise=mean_ttft_ms", "--price", "gpu_hour=2.5"]
    assert report.advice == json.loads(run_command(command, tmp_path, *words))["advice"]
    assert report.advice["goal"] == "mean_ttft_ms"
    done, total = calls[-1]
    assert done == total
    assert wavetank.run_trace_replay(trace, num_workers=2).advice is None


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"advise": 1}, "advise"),
        ({"advise": "p98_ttft_ms"}, "advise"),
        ({"advise": True, "seeds": 2}, "seeds"),
        ({"advise": True, "replay_mode": "online"}, "advise"),
        ({"advise": True, "price": {"gpu_hour": -1.0}}, "price"),
        ({"advise": True, "price": {"gpu_hour": [1]}}, "price['gpu_hour']"),
        ({"price": {"gpu_hour": 2.5}}, "price"),
    ],
)
def test_advice_that_cannot_be_given_is_refused(examples, given, place):
    with pytest.raises(wavetank.Error) as caught:
        wavetank.run_trace_replay(examples / "conversation.jsonl", **given)
    assert str(caught.value).startswith(f"{place}: ")
