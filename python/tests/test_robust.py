"""What a caller may do who does not mean well, or does not look."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import MappingProxyType

import pyarrow
import pytest

import wavetank

LINE = '{{"timestamp": {0}, "input_length": 512, "output_length": 4, "hash_ids": [{0}]}}\n'


def trace_of(path, requests):
    path.write_text("".join(LINE.format(number) for number in range(requests)))
    return path


def completed(report):
    return [row["metrics"]["completed_requests"] for row in report.rows]


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_trace_that_changed_is_read_again(pool, tmp_path):
    """Broken by: a worker that knows a trace by its name alone."""
    path = tmp_path / "t.jsonl"
    spec = {"base": {"trace": path}, "axes": {"num_workers": [1, 2]}}
    how = {"mp_context": get_context("spawn")} if pool is ProcessPoolExecutor else {}
    with pool(1, **how) as executor:
        for requests in [5, 9]:
            trace_of(path, requests)
            assert completed(wavetank.sweep(spec, executor=executor)) == [requests] * 2


def test_inputs_are_not_written_over(examples, tmp_path):
    trace = trace_of(tmp_path / "t.csv", 5)
    engine = tmp_path / "engine.json"
    engine.write_text('{"block_size": 16}')
    dataset = tmp_path / "ds.json"
    turns = '[{"id": "a", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]}]'
    dataset.write_text(turns)
    before = {path: path.read_bytes() for path in [trace, engine, dataset]}
    with pytest.raises(wavetank.UsageError, match="is the same file as an input"):
        wavetank.sweep({"base": {"trace": f"mooncake:{trace}"}, "axes": {"seed": [1]}}, output=trace)
    with pytest.raises(wavetank.UsageError, match="is the same file as an input"):
        wavetank.run_trace_replay(trace, extra_engine_args=f"@{engine}", report_jsonl_path=engine)
    with pytest.raises(wavetank.UsageError, match="io_trace_log"):
        wavetank.run_bench(dataset_path=dataset, io_trace_log=dataset, cpu_mem_gb=1, gpu_mem_gb=0)
    assert {path: path.read_bytes() for path in before} == before


def test_threads_share_an_iterator(tmp_path):
    """Broken by: a lock that is held while Python's code runs. Every request comes once."""
    rows = iter(wavetank.read_trace(trace_of(tmp_path / "t.jsonl", 3000)))
    seen: list[int] = []

    def noise(phase, info):
        len([number for number in range(200)])

    gc.callbacks.append(noise)
    try:

        def take():
            for row in rows:
                seen.extend(row["hash_ids"])
                cycle: list = []
                cycle.append(cycle)

        threads = [threading.Thread(target=take, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        gc.callbacks.remove(noise)
    assert sorted(seen) == list(range(3000))


PIPE = """
import os, sys, threading, wavetank
pipe, text = sys.argv[1], sys.argv[2]
os.mkfifo(pipe)
def feed():
    with open(pipe, "w") as file:
        file.write(text)
threading.Thread(target=feed, daemon=True).start()
report = wavetank.run_synthetic_trace_replay(10, 2, 3)
print(wavetank.compare(pipe, report)["sides"][0]["format"])
try:
    wavetank.read_trace(pipe)
except wavetank.UsageError as error:
    print(error.message)
"""


def test_files_are_read_beside_the_interpreter(tmp_path):
    """Broken by: a read that holds the interpreter, for which a thread of the same process is to write."""
    text = wavetank.run_synthetic_trace_replay(10, 2, 3).to_json()
    words = [sys.executable, "-c", PIPE, str(tmp_path / "pipe"), text]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "replay",
        "can be read once only, and a trace is read anew at every look",
    ], done.stderr


def test_standard_input_is_no_trace_to_look_at_again():
    with pytest.raises(wavetank.UsageError, match="files: can be read once only"):
        wavetank.read_trace("mooncake:-")


def test_files_keep_their_names_in_errors(tmp_path):
    folder = tmp_path / "data--set"
    folder.mkdir()
    path = folder / "run--my-trace.jsonl"
    with pytest.raises(wavetank.IoError) as caught:
        wavetank.run_trace_replay(path)
    assert caught.value.place == str(path)
    path.write_text("nonsense\n")
    with pytest.raises(wavetank.Error) as damaged:
        wavetank.run_trace_replay(f"mooncake:{path}")
    assert str(path) in str(damaged.value)


def test_warnings_name_arguments(examples):
    with pytest.warns(wavetank.WavetankWarning, match="^router_config has no effect"):
        wavetank.run_trace_replay(examples / "single_turn.jsonl", router_config={"router_temperature": 0.1})


def test_what_is_pickled_and_copied_is_the_same(examples):
    trace = wavetank.read_trace(examples / "conversation.jsonl")
    replayed = wavetank.run_trace_replay(examples / "conversation.jsonl", num_workers=2, capture_per_request=True)
    swept = wavetank.sweep({"base": {"trace": examples / "conversation.jsonl"}, "axes": {"num_workers": [1, 2]}})
    for make in [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]:
        assert pyarrow.table(make(trace)) == pyarrow.table(trace)
        again = make(replayed)
        assert again == replayed and list(again.per_request) == list(replayed.per_request)
        assert pyarrow.table(again.per_request) == pyarrow.table(replayed.per_request)
        again = make(swept)
        assert again == swept and pyarrow.table(again.points) == pyarrow.table(swept.points)


def test_any_mapping_is_a_dict(examples):
    trace = examples / "single_turn.jsonl"
    engine = MappingProxyType({"block_size": 16})
    report = wavetank.run_trace_replay(trace, extra_engine_args=engine)
    assert report["plan"]["simulation"]["engine"]["block_size"] == 16
    spec = MappingProxyType({"base": MappingProxyType({"trace": trace}), "axes": {"num_workers": (1, 2)}})
    assert len(wavetank.sweep(spec).rows) == 2


class Grows:
    """A path that changes the dict it is in."""

    def __init__(self, into):
        self.into = into

    def __fspath__(self):
        self.into[f"key{len(self.into)}"] = 1
        return "a"


def test_a_dict_that_changes_meanwhile(examples):
    engine: dict = {"block_size": 16}
    engine["odd"] = Grows(engine)
    with pytest.raises(wavetank.UsageError, match="odd"):
        wavetank.run_trace_replay(examples / "single_turn.jsonl", extra_engine_args=engine)


def test_a_long_range_is_refused_before_it_is_made():
    with pytest.raises(wavetank.UsageError, match="axes.seed: has more than 1000000 values"):
        wavetank.sweep({"base": {"input_tokens": 1}, "axes": {"seed": range(10**12)}})


def test_output_is_tried_before_the_run(examples, tmp_path):
    seen: list = []
    with pytest.raises(wavetank.IoError, match="cannot write"):
        wavetank.run_trace_replay(
            examples / "single_turn.jsonl",
            report_jsonl_path=os.path.join(os.devnull, "x.jsonl"),
            progress=lambda *progress: seen.append(progress),
        )
    assert seen == []


class Failing(ThreadPoolExecutor):
    def submit(self, *_args, **_named):
        raise KeyError("x")


def test_an_executor_that_fails_says_why():
    spec = {"base": {"input_tokens": 10, "output_tokens": 2, "request_count": 2}, "axes": {"seed": [1]}}
    with Failing(1) as executor, pytest.raises(wavetank.IoError, match="the executor failed: KeyError: 'x'"):
        wavetank.sweep(spec, executor=executor)


def test_sides_are_named_where_they_are_wrong():
    with pytest.raises(wavetank.InputError, match="^before: not a result"):
        wavetank.compare({}, {})
