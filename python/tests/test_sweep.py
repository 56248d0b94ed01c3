"""Sweeps: the same rows as the command's, whoever runs the points."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import wavetank

GRID = {
    "axes": {"router_mode": ["round_robin", "kv_router"], "num_workers": [2, 3], "seed": range(7, 9)},
    "pareto": {"minimize": ["p99_ttft_ms", "gpu_hours"]},
    "sla": {"p99_ttft_ms": 72},
}
SMALL = {"input_tokens": 100, "output_tokens": 4, "request_count": 20}


@pytest.fixture
def grid(examples):
    return {"base": {"trace": examples / "conversation.jsonl", "trace_block_size": 512}, **GRID}


def without_wall(report):
    report = json.loads(report.to_json())
    del report["wall"]
    return report


@pytest.fixture
def toml(examples, tmp_path):
    spec = tmp_path / "s.toml"
    spec.write_text(
        f"[base]\ntrace = '{examples / 'conversation.jsonl'}'\ntrace_block_size = 512\n"
        "[axes]\nrouter_mode = ['round_robin', 'kv_router']\nnum_workers = [2, 3]\nseed = [7, 8]\n"
        "[pareto]\nminimize = ['p99_ttft_ms', 'gpu_hours']\n[sla]\np99_ttft_ms = 72\n"
    )
    return spec


def test_rows_are_the_commands(grid, toml, command, tmp_path):
    """Broken by: axes in another order, or a report that is written otherwise."""
    words = [command, "sweep", toml, "-o", tmp_path / "c.json", "-o", tmp_path / "c.csv"]
    subprocess.run(words, check=True, capture_output=True)
    ours = [wavetank.sweep(toml, output=[tmp_path / "p.json", tmp_path / "p.csv"]), wavetank.sweep(grid)]
    told = json.loads((tmp_path / "c.json").read_text())
    del told["wall"]
    assert without_wall(ours[0]) == told
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert (tmp_path / "p.json").read_text() == ours[0].to_json()
    assert ours[1].rows == told["rows"]
    assert [row["point"] for row in ours[1].rows if row["pareto"]]
    assert [row["parameters"]["seed"] for row in ours[1].rows] == [7, 8] * 4
    assert (tmp_path / "p.points.jsonl").read_text().count("\n") == 9


def test_a_report_is_a_table(grid):
    report = wavetank.sweep(grid)
    assert repr(report).startswith("wavetank sweep: 8 points, 8 run now")
    shown = report._repr_html_()
    assert "<strong>wavetank sweep: 8 points" in shown and "data:image/svg" in shown
    assert "<svg" in report.plot().svg and report.to_html().startswith("<!")
    assert len(report.points) == 8 and "8 rows" in repr(report.points)
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns[:5]) == ["point", "plan_hash", "router_mode", "num_workers", "seed"]
    assert list(frame["p99_ttft_ms"]) == [row["metrics"]["p99_ttft_ms"] for row in report.rows]
    assert list(frame["pareto"]) == [row["pareto"] for row in report.rows]
    assert frame["counts.completed"].dtype.kind == "i"


def test_the_documented_sweep_runs(examples, tmp_path):
    text = (examples.parent / "docs" / "sweep.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    (tmp_path / "examples").symlink_to(examples)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{'num_workers': ")
    assert {"rows.csv", "rows.json", "rows.points.jsonl"} <= {file.name for file in tmp_path.iterdir()}


class Plain(Executor):
    """One thread for each job, and a note of where jobs were taken."""

    def __init__(self):
        self.took: list[str] = []

    def submit(self, function, /, *words):
        future: Future = Future()
        self.took.append(words[0])

        def run():
            try:
                future.set_result(function(*words))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run).start()
        return future


def test_any_executor_gives_the_same_rows(grid):
    """Broken by: a second way of running points that is not the first."""
    local = wavetank.sweep(grid)
    plain = Plain()
    assert without_wall(wavetank.sweep(grid, executor=plain)) == without_wall(local)
    assert len(plain.took) == 8 and len(set(plain.took)) == 8
    with ThreadPoolExecutor(2) as threads:
        assert without_wall(wavetank.sweep(grid, executor=threads, threads=3)) == without_wall(local)
    best = {**grid, "search": {"goal": "best", "minimize": "mean_ttft_ms", "rungs": 2}}
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert without_wall(wavetank.sweep(grid, executor=processes)) == without_wall(local)
        found = wavetank.sweep(best, executor=processes)
    assert without_wall(found) == without_wall(wavetank.sweep(best))
    assert found.search["answer"]["parameters"]


def test_finished_points_are_kept_as_they_come(grid, tmp_path):
    """Broken by: points that are written at the end, or run again."""
    output, seen = tmp_path / "rows.csv", []

    def look(done, total):
        seen.append((done, total, (tmp_path / "rows.points.jsonl").read_text().count("\n") - 1))

    first = wavetank.sweep(grid, output=output, threads=1, progress=look)
    assert seen[-1] == (8, 8, 8)
    assert all(done <= kept for done, total, kept in seen if total)
    took = Plain()
    again = wavetank.sweep(grid, output=output, executor=took)
    assert took.took == [] and again.rows == first.rows and again["wall"]["points_run"] == 0
    wavetank.sweep(grid, output=output, executor=took, fresh=True)
    assert len(took.took) == 8


def test_shards_are_parts(grid):
    parts = [wavetank.sweep(grid, shard=f"{number}/3").rows for number in (1, 2, 3)]
    assert sorted(row["point"] for part in parts for row in part) == list(range(8))


class Broken(Plain):
    """Loses its third job."""

    def submit(self, function, /, *words):
        if len(self.took) == 2:
            raise RuntimeError("no such machine")
        return super().submit(function, *words)


def test_what_fails_elsewhere_is_said(grid, examples, tmp_path):
    """Broken by: an error of a point whose kind, place or point is lost on the way."""
    with pytest.raises(wavetank.IoError, match="(?s)num_workers = .*: the executor failed: RuntimeError: no such machine"):
        wavetank.sweep(grid, executor=Broken(), threads=1)
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text((examples / "single_turn.jsonl").read_text()[:3000] + "\n{}\n")
    spec = {"base": {"trace": damaged}, "axes": {"num_workers": [1, 2]}}
    errors = []
    for executor in ("local", Plain()):
        with pytest.raises(wavetank.InputError, match=str(damaged)) as caught:
            wavetank.sweep(spec, executor=executor, threads=1)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


HOSTILE = [
    ({"spec": {"axs": {}}}, wavetank.InputError, 'sweep: unknown field "axs"\nhint: did you mean axes?'),
    ({"spec": {"base": SMALL}}, wavetank.InputError, "sweep: there is nothing to vary"),
    ({"spec": {"axes": {"seed": [float("nan")]}}}, wavetank.UsageError, "sweep.axes.seed: must be a finite"),
    ({"spec": {"axes": {"seed": 3}}}, wavetank.InputError, 'axis "seed" must be a list or a range, not 3'),
    ({"spec": {"axes": {3: [1]}}}, wavetank.UsageError, "sweep.axes: keys must be texts, not 3"),
    ({"spec": 5}, wavetank.UsageError, "spec: must be "),
    ({"shard": "4/3"}, wavetank.UsageError, 'shard: "4/3" is no shard'),
    ({"max_points": 3}, wavetank.UsageError, "max_points: 5 points, and 3 are the most"),
    ({"executor": "spark"}, wavetank.UsageError, "executor: must be "),
    ({"executor": None}, wavetank.UsageError, "executor: must be "),
    ({"executor": "ray", "ray_options": 5}, wavetank.UsageError, "ray_options: must be a dict, not 5"),
    ({"executor": "ray", "fresh": "no"}, wavetank.UsageError, "fresh: must be True or False, not 'no'"),
    ({"shard": 5}, wavetank.UsageError, "shard: must be a text, not 5"),
    ({"threads": "x"}, wavetank.UsageError, "threads: must be a whole number from 1"),
    ({"max_points": 1.5}, wavetank.UsageError, "max_points: must be a whole number"),
    ({"threads": 0}, wavetank.UsageError, "threads: must be a whole number from 1"),
    ({"output": "rows.xlsx"}, wavetank.UsageError, "output rows.xlsx: what format is this"),
    ({"ray_options": {"num_cpus": 1}}, wavetank.UsageError, "ray_options: belongs to executor"),
    ({"progress": 5}, wavetank.UsageError, "progress: must be a function"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), HOSTILE)
def test_hostile_arguments(arguments, kind, message):
    spec = {"base": SMALL, "axes": {"num_workers": range(1, 6)}}
    with pytest.raises(kind) as caught:
        wavetank.sweep(**{"spec": spec, **arguments})
    assert message in str(caught.value)


def test_ray_that_is_not_there_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    spec = {"base": SMALL, "axes": {"num_workers": [1]}}
    with pytest.raises(wavetank.UnsupportedError, match=r"executor: Ray is not installed\nhint: pip install"):
        wavetank.sweep(spec, executor="ray")


class Nowhere(Executor):
    """Takes jobs and never gives them back."""

    def __init__(self):
        self.futures: list[Future] = []

    def submit(self, function, /, *words):
        self.futures.append(Future())
        return self.futures[-1]


def test_ctrl_c_ends_what_is_under_way():
    """Broken by: a wait that does not hear, or jobs that are left alone."""
    nowhere = Nowhere()

    def interrupt():
        while len(nowhere.futures) < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    spec = {"base": SMALL, "axes": {"num_workers": range(1, 6)}}
    with pytest.raises(KeyboardInterrupt):
        wavetank.sweep(spec, executor=nowhere, threads=3)
    assert len(nowhere.futures) == 3 and all(future.cancelled() for future in nowhere.futures)
