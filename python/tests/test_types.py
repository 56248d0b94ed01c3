"""What type checkers see of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import wavetank

Need = Callable[[str], ModuleType]
PACKAGE = Path(wavetank.__file__).parent

USES = '''
from typing import Any, Literal

from typing_extensions import assert_type

import wavetank

report = wavetank.run_trace_replay("trace.jsonl", num_workers=4, router_mode="kv_router", seed=1)
assert_type(report, wavetank.ReplayReport)
assert_type(report.per_request, wavetank.Requests | None)
assert_type(report.plot().png, bytes)
assert_type(next(iter(wavetank.read_trace(["a", "b"]))), dict[str, Any])
client = wavetank.Client()
assert_type(client.lookup("r", "m", token_ids=[1])["chunks"], list[Literal["l1", "l2", "absent"]])
assert_type(client.retrieve("r")[0], memoryview)
'''
WRONG = '''
wavetank.run_trace_replay("trace.jsonl", num_workers="four")
client.lookup("r", "m", mode="fuzzy")
'''


def run(*words: str, cwd: Path) -> tuple[int, str]:
    # A package that is installed is found by itself, and must not be named.
    place = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}
    program = [sys.executable, "-m", *words]
    done = subprocess.run(
        program, capture_output=True, text=True, cwd=cwd, env=os.environ | place, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_package_keeps_its_types(need: Need, tmp_path: Path, repository: Path) -> None:
    """Broken by: a function without types, or one that is called otherwise than it says."""
    need("mypy")
    config = str(repository / "pyproject.toml")
    code, said = run("mypy", "--config-file", config, str(repository / "python" / "wavetank"), cwd=tmp_path)
    assert code == 0, said


def test_the_stub_is_the_native_module(need: Need, tmp_path: Path, repository: Path) -> None:
    """Broken by: a function, class or argument of crates/py that the stub does not have, or the other way."""
    need("mypy")
    config = str(repository / "pyproject.toml")
    code, said = run("mypy.stubtest", "wavetank._wavetank", "--mypy-config-file", config, cwd=tmp_path)
    assert code == 0, said


def test_users_are_told_what_does_not_fit(need: Need, tmp_path: Path, repository: Path) -> None:
    """Broken by: a package without py.typed, a result that is Any."""
    need("mypy")
    assert (PACKAGE / "py.typed").is_file() and (PACKAGE / "_wavetank.pyi").is_file()
    config = str(repository / "pyproject.toml")
    (tmp_path / "right.py").write_text(USES)
    code, said = run("mypy", "--config-file", config, "right.py", cwd=tmp_path)
    assert code == 0, said
    (tmp_path / "wrong.py").write_text(USES + WRONG)
    code, said = run("mypy", "--config-file", config, "wrong.py", cwd=tmp_path)
    assert code == 1 and "Found 2 errors" in said, said
    assert '"num_workers" to "run_trace_replay"' in said and '"mode" to "lookup"' in said, said
