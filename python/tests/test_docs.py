"""The examples of docs/python.md, run as they stand there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import wavetank
from wavetank import _wavetank

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVER = "http://127.0.0.1:7380"


@pytest.fixture
def folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples name."""
    (tmp_path / "examples").symlink_to(repository / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_run(
    repository: Path, folder: Path, server: Any, need: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broken by: an argument, a key or a method that is called otherwise by now."""
    need("pandas")
    need("pyarrow")
    text = (repository / "docs" / "python.md").read_text(encoding="utf-8")
    assert text.count(SERVER) == 1
    text = text.replace(SERVER, server.url)
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == 10
    names: dict[str, Any] = {}
    for block in blocks:
        # Errors show the line of the document.
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), "docs/python.md", "exec"), names)
    said = capsys.readouterr().out
    assert "0 ['absent', 'absent']" in said and "2 0 0" in said and "b'keys and values of 0a' 0" in said
    assert 'unknown router "best" router_mode known: kv_router' in said
    for name in ["operations.csv", "ttft.svg", "report.json", "routers.png", "routers.html"]:
        assert (folder / name).stat().st_size > 0


def test_every_name_is_described(repository: Path) -> None:
    """Broken by: a function, class or method that came without a word about it."""
    text = (repository / "docs" / "python.md").read_text(encoding="utf-8")
    public = set(wavetank.__all__) - {"__version__", "Report", "Plot"}
    missing = [name for name in sorted(public) if not re.search(rf"\b{name}\b", text)]
    methods = [name for name in vars(wavetank.Client) if not name.startswith("_") and name != "close"]
    missing += [name for name in methods if f"`{name}(" not in text]
    assert missing == []


@pytest.mark.parametrize("verb", ["replay", "bench"])
def test_flags_that_are_no_arguments_are_said(verb: str, repository: Path, command: str) -> None:
    """Broken by: a flag of the command that is refused here, and nobody says what to do instead."""
    text = (repository / "docs" / "python.md").read_text(encoding="utf-8")
    shown = subprocess.run([command, verb, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", shown, re.MULTILINE)
    flags = {flag.replace("-", "_") for flag in found}
    refused = {flag for flag in flags - {"help", "version", "seeds"} if not is_argument(verb, flag)}
    assert {"plan", "html"} <= refused
    table = text.split("| flag of the command | here |")[1].split("\n\n")[0]
    assert [flag for flag in sorted(refused) if f"`{flag}`" not in table] == []


def is_argument(verb: str, flag: str) -> bool:
    if verb == "replay":
        return flag in _wavetank.replay_flags()
    with pytest.raises(wavetank.Error) as caught:
        wavetank.run_bench(**{flag: "?", "model": "none such"})
    return "unexpected argument" not in str(caught.value)


def test_the_notebook_is_linked(repository: Path) -> None:
    """Broken by: a link to a file that is not there."""
    text = (repository / "docs" / "python.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert "notebook.ipynb" in links
    assert [link for link in links if not (repository / "docs" / link).exists()] == []
