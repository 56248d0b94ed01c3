"""What tests share: the repository's files, and packages that may be missing."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import wavetank

REPOSITORY = Path(__file__).resolve().parents[2]


def peer(name: str) -> ModuleType:
    """A package that some tests need: they are skipped without it, or fail where all must be there."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        if os.environ.get("WAVETANK_REQUIRE_PEERS") == "1":
            pytest.fail(f"{name} must be installed: {missing}")
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def examples() -> Path:
    """The traces of the repository."""
    return REPOSITORY / "examples"


@pytest.fixture(scope="session")
def command() -> str:
    """The binary that cargo built, or the script of the package."""
    found = os.environ.get("WAVETANK_BINARY") or shutil.which("wavetank")
    assert found, "neither the binary nor the script of the package is there"
    return found


@pytest.fixture(scope="session")
def conversation() -> Path:
    """A trace of sessions with turns."""
    return REPOSITORY / "examples" / "conversation.jsonl"


@pytest.fixture
def need() -> object:
    """`need("pandas")` gives the package, or ends the test."""
    return peer


@pytest.fixture(scope="session")
def replayed(conversation: Path) -> wavetank.ReplayReport:
    """A small replay with its requests."""
    return wavetank.run_trace_replay(conversation, num_workers=2, capture_per_request=True, sla_ttft_ms=40.0)


@pytest.fixture(scope="session")
def benched(tmp_path_factory: pytest.TempPathFactory) -> wavetank.BenchReport:
    """A benchmark in virtual time: nothing is written but the log of operations."""
    log = tmp_path_factory.mktemp("bench") / "operations.csv"
    flags = {"duration": 10, "num_users": 8, "cpu_mem_gb": 0.5, "gpu_mem_gb": 0, "generation_mode": "fast"}
    return wavetank.run_bench(model="tiny-1b", io_trace_log=log, **flags)


RUN = """{
 "model": "tiny <b>", "hardware": "none", "vllm_version": "0.19.0",
 "engine": {"tensor_parallel_size": 1, "data_parallel_size": 1, "max_num_seqs": 1,
  "max_num_batched_tokens": 2048, "max_model_len": null},
 "kv_cache": {"num_gpu_blocks": 101, "block_size": 16},
 "trace_block_size": 16,
 "model_config": {"hidden_size": 64, "num_hidden_layers": 2},
 "timing": {"name": "fixed", "prefill_ms": 20.0, "decode_ms": 5.0}
}"""
WORKLOAD = """{"timestamp":40.0,"input_length":32,"output_length":3,"hash_ids":[1,2]}
{"timestamp":162.5,"input_length":20,"output_length":3,"hash_ids":[3,4]}
"""
MEASURED = """index,input_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s
0,32,3,0.000000,0.000000,0.020000,0.030000
1,20,3,0.100000,0.100000,0.125000,0.140000
"""


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured run that can be worked out by hand: the second request took 25 ms instead of 20."""
    folder = tmp_path_factory.mktemp("measured")
    for name, text in {"run.json": RUN, "workload.jsonl": WORKLOAD, "measured.csv": MEASURED}.items():
        (folder / name).write_text(text)
    return folder


SMALL = ["--l1-size-gb", "0.05", "--chunk-size", "4"]


class Server:
    """A `wavetank serve` on any free port of the loopback."""

    def __init__(self, *flags: str) -> None:
        words = [sys.executable, "-m", "wavetank", "serve", "--port", "0", "--http-port", "0", *SMALL, *flags]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        self.url = found.group()
        # Nobody reads what it says from here on, and it must not wait for that.
        self._reader = threading.Thread(target=self.process.stderr.read)
        self._reader.start()

    def end(self) -> int:
        """Ask it to end, if it has not; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server for all tests that do not end it."""
    server = Server()
    yield server
    assert server.end() == 0


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """`serve("--flag", ...)` starts a server that ends with the test."""
    started = []

    def start(*flags: str) -> Server:
        started.append(Server(*flags))
        return started[-1]

    yield start
    assert [server.end() for server in started] == [0] * len(started)
