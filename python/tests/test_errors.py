"""What is wrong is an exception of its kind, with the argument's name."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from array import array

import pytest

import wavetank

LOOP: list = []
LOOP.append(LOOP)


class Odd:
    """No number, text, list or dict."""

    def __repr__(self):
        return "an odd thing"


HOSTILE = [
    ({"num_workers": 0}, "num_workers: must be at least 1"),
    ({"num_workers": -1}, "num_workers"),
    ({"num_workers": "four"}, "num_workers"),
    ({"num_workers": 2**80}, "num_workers: a whole number of more than 64 bits"),
    ({"num_workers": 1.5}, "num_workers"),
    ({"num_workers": Odd()}, "num_workers: must be a number, a text, a list or a dict, not Odd"),
    ({"num_wrokers": None}, "num_wrokers.*did you mean num_workers"),
    ({"num_wrokers": 4}, "num_wrokers.*did you mean num_workers"),
    ({"router_mode": "nope"}, "router_mode: unknown router"),
    ({"router_mode": "kv_router"}, "router_mode|num_workers"),
    ({"replay_mode": "sideways"}, "replay_mode: unknown mode"),
    ({"arrival_speedup_ratio": float("nan")}, "arrival_speedup_ratio: must be a finite number"),
    ({"arrival_speedup_ratio": float("inf")}, "arrival_speedup_ratio: must be a finite number"),
    ({"arrival_speedup_ratio": -1.0}, "arrival_speedup_ratio"),
    ({"extra_engine_args": {"block_siz": 16}}, 'extra_engine_args: .*"block_siz"'),
    ({"extra_engine_args": {"block_size": Odd()}}, "extra_engine_args.block_size: must be a number"),
    ({"extra-engine-args.block-siz": 16}, 'extra_engine_args.*"block-siz"'),
    ({"extra_engine_args": {16: 16}}, "extra_engine_args: keys must be texts, not 16"),
    ({"extra_engine_args": "{not json"}, "extra_engine_args"),
    ({"extra_engine_args": 3}, "extra_engine_args"),
    ({"extra_engine_args": {"a": LOOP}}, "nested too deeply"),
    ({"router_config": "\ud800"}, "router_config: is a text that is not Unicode"),
    ({"trace_block_size": 0}, "trace_block_size"),
    ({"max_sim_time_ms": "soon"}, "max_sim_time_ms: must be a number"),
    ({"max_sim_time_ms": -1}, "max_sim_time_seconds"),
    ({"seeds": 0}, "seeds: must be a whole number from 1"),
    ({"seeds": 2, "capture_per_request": True}, "seeds: cannot be combined"),
    ({"aic_perf_config": 5}, "aic_perf_config: must be a dict"),
    ({"report_jsonl_path": 5}, "report_jsonl_path: must be a path"),
    ({"progress": 5}, "progress: must be a function"),
    ({"max_sim_time_ms": 10**400}, "max_sim_time_ms: must be a number, not 1000"),
    ({"max_sim_time_ms": 10**5000}, "max_sim_time_ms: must be a number, not one of very many digits"),
    ({"max_sim_time_ms": array("d", [1.0])}, "max_sim_time_ms: must be a number"),
    ({"seeds": "three"}, "seeds: must be a whole number"),
    ({"seeds": 2.0}, "seeds: must be a whole number"),
    ({"seeds": True}, "seeds: must be a whole number"),
    ({"aic_perf_config": {5: 1}}, "aic_perf_config: keys must be texts, not 5"),
    ({"capture_per_request": "no"}, "capture_per_request: must be True or False, not 'no'"),
    ({"replay_concurrency": True}, "replay_concurrency"),
    ({"trace": "b.jsonl"}, "trace: is given twice"),
    ({"trace_file": "b.jsonl"}, "trace_file: is given twice"),
    ({"num_workers": 2, "num-workers": 3}, "num-workers|num_workers: is given twice"),
    ({"max_sim_time_ms": 5, "max_sim_time_seconds": 1}, "max_sim_time_seconds: is given twice"),
    ({"aic_perf_config": {"aic_system": "a"}, "aic_system": "b"}, "aic_system: is given twice"),
    ({"aic_perf_config": {"system": "a"}, "aic-system": "b"}, "aic-system: is given twice"),
    ({"aic_perf_config": {"aic_system": "a", "system": "b"}}, "aic_system: is given twice"),
    ({"input_tokens": 5}, "input_tokens: belongs to synthetic load"),
]


@pytest.mark.parametrize(("arguments", "message"), HOSTILE, ids=lambda value: str(value)[:40] if isinstance(value, str) else None)
def test_hostile_arguments(arguments, message, examples):
    with pytest.raises(wavetank.UsageError, match=f"(?s){message}"):
        wavetank.run_trace_replay(examples / "single_turn.jsonl", **arguments)


@pytest.mark.parametrize("files", [None, 5, b"bytes", {"a": 1}, [5], [None]])
def test_what_is_no_path(files):
    for function, name in [(wavetank.run_trace_replay, "trace_files"), (wavetank.read_trace, "files")]:
        with pytest.raises(wavetank.UsageError, match=f"{name}: must be a path"):
            function(files)


@pytest.mark.parametrize("name", ["no\udcff.jsonl", os.fsdecode(b"no\xff.jsonl")])
def test_a_path_that_is_no_text(name):
    """Broken by: an exception of the encoder, which names no argument."""
    for function, argument in [(wavetank.run_trace_replay, "trace_files"), (wavetank.read_trace, "files")]:
        with pytest.raises(wavetank.UsageError, match=f"{argument}: is a text that is not Unicode"):
            function(["fine.jsonl", name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trace_block_size": -1}, "trace_block_size: must be a whole number from 1"),
        ({"trace_block_size": 2**40}, "trace_block_size: must be a whole number from 1"),
        ({"trace_block_size": "x"}, "trace_block_size: must be a whole number from 1"),
        ({"format": 5}, "format: must be a text, not 5"),
    ],
)
def test_hostile_arguments_of_a_trace(arguments, message, examples):
    with pytest.raises(wavetank.UsageError, match=message):
        wavetank.read_trace(examples / "single_turn.jsonl", **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": (1, 2)}, "names: must be a text, not 1"),
        ({"names": ("a",)}, "names: must be two texts"),
        ({"names": "ab"}, "names: must be two texts"),
        ({"names": 5}, "names: must be a text or several"),
        ({"fail_if": 5}, "fail_if: must be a text or several, not 5"),
        ({"fail_if": [5]}, "fail_if: must be a text, not 5"),
        ({"within": 5}, "within: must be a text or several, not 5"),
        ({"within": {"5%": 1}}, "within: must be a text or several"),
        ({"within": [None]}, "within: must be a text, not None"),
    ],
)
def test_hostile_arguments_of_a_comparison(arguments, message, replayed):
    with pytest.raises(wavetank.UsageError, match=message):
        wavetank.compare(replayed, replayed, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda report: wavetank.page("x", {"a": "report.json"}), r"reports\['a'\]: must be a dict"),
        (lambda report: wavetank.page("x", 5), "reports: must be a dict, not 5"),
        (lambda report: wavetank.page("x", {5: report}), "reports: keys must be texts, not 5"),
        (lambda report: wavetank.page(5, {"a": report}), "title: must be a text, not 5"),
        (lambda report: report.to_html(5), "title: must be a text, not 5"),
        (lambda report: report.plot(5), "name: must be a text, not 5"),
        (lambda report: report.plot().save(5), "path: must be a path, not 5"),
        (lambda report: report.save(True), "path: must be a path, not True"),
        (lambda report: report.save(None), "path: must be a path, not None"),
        (lambda report: report.save_html(5), "path: must be a path, not 5"),
    ],
)
def test_hostile_arguments_of_a_report(call, message, replayed):
    """Broken by: a number that is taken for an open file, which is written to and closed."""
    with pytest.raises(wavetank.UsageError, match=message):
        call(replayed)


def test_rows_that_are_not_there(replayed):
    for at in (500, -501, 2**70, -(2**70)):
        with pytest.raises(IndexError, match="there is no request"):
            replayed.per_request[at]


def test_numbers_of_numpy_are_numbers(examples, need):
    """Broken by: an array whose truth is asked for, a number refused because it is not Python's own."""
    numpy = need("numpy")
    trace = examples / "single_turn.jsonl"
    for name in ("seeds", "max_sim_time_ms"):
        with pytest.raises(wavetank.UsageError, match=f"{name}: must be a"):
            wavetank.run_trace_replay(trace, **{name: numpy.array([1, 2])})
    given = {"max_sim_time_ms": numpy.float32(1e9), "capture_per_request": numpy.True_}
    report = wavetank.run_trace_replay(trace, **given)
    assert report["plan"]["simulation"]["max_sim_time"] is not None and report.per_request is not None


def test_nothing_to_replay():
    with pytest.raises(wavetank.UsageError, match="nothing to replay"):
        wavetank.run_trace_replay([])


@pytest.mark.parametrize("lengths", [(0, 1, 1), (1, 0, 1), (1, 1, 0), ("a", 1, 1), (None, 1, 1), (2**40, 1, 1)])
def test_synthetic_lengths(lengths):
    with pytest.raises(wavetank.UsageError):
        wavetank.run_synthetic_trace_replay(*lengths)


def test_kinds_are_pythons_too(examples, tmp_path):
    with pytest.raises(OSError) as missing:
        wavetank.run_trace_replay(tmp_path / "none.jsonl")
    assert isinstance(missing.value, wavetank.IoError)
    assert missing.value.place == str(tmp_path / "none.jsonl")
    assert "No such file" in missing.value.message and missing.value.hint
    with pytest.raises(NotImplementedError) as unsupported:
        wavetank.run_trace_replay(examples / "single_turn.jsonl", planner_config={"a": 1})
    assert isinstance(unsupported.value, wavetank.UnsupportedError)
    with pytest.raises(ValueError) as usage:
        wavetank.run_trace_replay(examples / "single_turn.jsonl", num_workers=0)
    assert isinstance(usage.value, wavetank.Error)
    again = pickle.loads(pickle.dumps(usage.value))
    assert (type(again), str(again)) == (type(usage.value), str(usage.value))


def test_an_io_error_is_an_os_error_in_its_fields(tmp_path):
    """Broken by: a message where the number belongs, a path where the words belong."""
    with pytest.raises(wavetank.IoError) as caught:
        wavetank.run_trace_replay(tmp_path / "none.jsonl")
    error = caught.value
    assert (error.errno, error.strerror) == (errno.ENOENT, "No such file or directory")
    assert (error.filename, error.filename2) == (str(tmp_path / "none.jsonl"), None)
    other = wavetank.IoError("the server does not answer in time", "http://h", "wait")
    assert (other.errno, other.strerror, other.filename) == (None, None, "http://h")
    assert str(other) == "http://h: the server does not answer in time\nhint: wait"


@pytest.mark.parametrize("kind", [wavetank.IoError, wavetank.UsageError, wavetank.StuckError])
def test_errors_travel(kind):
    """Broken by: what an error says, or the status of a server, lost on the way to another process."""
    error = kind("no room (os error 28)", "x.csv", hint="make some")
    error.status = 503
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(again), str(again), again.args) == (kind, str(error), error.args)
        assert (again.message, again.place, again.hint, again.status) == (*error.args, 503)
        assert getattr(again, "errno", 28) == 28 and getattr(again, "filename", "x.csv") == "x.csv"


def test_a_damaged_trace_names_its_line(examples, tmp_path):
    lines = (examples / "single_turn.jsonl").read_text().splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("".join(lines[:6]) + lines[6][:20])
    with pytest.raises(wavetank.InputError) as caught:
        wavetank.run_trace_replay(damaged)
    assert caught.value.place == f"{damaged}:7"


def test_output_over_the_trace_is_refused(examples, tmp_path):
    trace = tmp_path / "trace.jsonl"
    text = (examples / "single_turn.jsonl").read_bytes()
    trace.write_bytes(text)
    with pytest.raises(wavetank.UsageError, match="report_jsonl_path .*: is the same file as an input"):
        wavetank.run_trace_replay(trace, report_jsonl_path=trace)
    assert trace.read_bytes() == text


def test_output_that_cannot_be_written_is_said(examples, tmp_path):
    with pytest.raises(wavetank.IoError, match="cannot write"):
        wavetank.run_trace_replay(examples / "single_turn.jsonl", report_jsonl_path=tmp_path)
