"""The wheel in a clean environment: what the README shows works by copy and paste, and the command is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import wavetank

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """The folder of programs of an environment with the wheel and nothing else."""
    wheel = os.environ.get("WAVETANK_WHEEL")
    if wheel is None:
        pytest.skip("`cargo xtask python` builds the wheel")
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel], check=True)
    return folder / "bin"


def examples_of(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def test_the_readme_works_by_copy_and_paste(clean):
    [example] = examples_of("README.md")
    done = subprocess.run([clean / "python", "-c", example], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["round_robin", "kv_router"]
    assert all(re.search(r"P99 TTFT \d+\.\d ms, \d+% of prompt tokens reused, slowest after \d", line) for line in lines)


def test_the_wheel_carries_the_command(clean, examples, tmp_path):
    version = subprocess.run([clean / "wavetank", "--version"], check=True, capture_output=True, text=True)
    number = re.escape(wavetank.__version__)
    assert re.fullmatch(rf"wavetank {number}( \([0-9a-f]{{12,}}(-dirty)?\))?\n", version.stdout)
    words = ["replay", examples / "single_turn.jsonl", "--report-json", tmp_path / "r.json"]
    subprocess.run([clean / "wavetank", *words], check=True, capture_output=True)
    assert (tmp_path / "r.json").is_file()
    refused = subprocess.run([clean / "wavetank", "replay", tmp_path / "none"], capture_output=True, text=True)
    assert refused.returncode == 2 and "none" in refused.stderr


def test_it_is_typed_and_names_what_it_has():
    folder = Path(wavetank.__file__).parent
    assert (folder / "py.typed").is_file()
    assert all(hasattr(wavetank, name) for name in wavetank.__all__)
    assert sys.version_info >= (3, 10)
