"""The storage benchmark and validation from Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import wavetank

# On a virtual clock: nothing takes time, and two runs are the same.
VIRTUAL = {"duration": 20, "num_users": 5, "model": "tiny-1b", "cpu_mem_gb": 1, "gpu_mem_gb": 0}
VIRTUAL |= {"generation_mode": "deterministic", "seed": 7}


@pytest.mark.filterwarnings("ignore::wavetank.WavetankWarning")
def test_a_virtual_benchmark_is_that_of_the_command(command, tmp_path):
    seen = []
    log = tmp_path / "ours.csv"
    report = wavetank.run_bench(io_trace_log=log, progress=lambda done, total: seen.append((done, total)), **VIRTUAL)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in VIRTUAL.items()]
    output = tmp_path / "report.json"
    theirs = tmp_path / "theirs.csv"
    subprocess.run(
        [command, "bench", *words, f"--io-trace-log={theirs}", "--output", output], check=True, capture_output=True
    )
    assert log.read_bytes() == theirs.read_bytes()
    written = json.loads(output.read_text())
    assert set(report) == set(written)
    assert report["accounting"] == written["accounting"]
    assert report.failure is None


@pytest.mark.filterwarnings("ignore::wavetank.WavetankWarning")
def test_real_bytes_on_a_real_disk(tmp_path):
    report = wavetank.run_bench(
        duration=1, num_users=2, model="tiny-1b", cpu_mem_gb=0, gpu_mem_gb=0, generation_mode="none", cache_dir=tmp_path
    )
    assert report["plan"]["run"]
    assert json.loads(report.to_json()) == report


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"num_usres": 4}, "(?s)num_usres.*num_users"),
        ({"num_users": "many"}, "num_users"),
        ({"num_users": {"a": 1}}, "num_users: must be a number or a text"),
        ({"model": "nope"}, "nope"),
        ({"duration": -1}, "duration"),
        ({"generation_mode": "slow"}, "generation_mode"),
        ({"progress": 3}, "progress: must be a function"),
    ],
)
def test_hostile_flags(flags, message):
    with pytest.raises(wavetank.UsageError, match=message):
        wavetank.run_bench(**flags)


MEASURED = Path(__file__).resolve().parents[3] / "shared" / "data"


def test_validation_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(wavetank.IoError, match="run.json"):
        wavetank.validate(tmp_path)
    with pytest.raises(wavetank.UsageError, match="tolerance: must be a number"):
        wavetank.validate(tmp_path, tolerance="tight")
    with pytest.raises(wavetank.UsageError, match="run: must be a path"):
        wavetank.validate(5)
