"""The worked notebook, run from its first cell to its last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Need = Callable[[str], ModuleType]


def executed(nbformat: Any, nbclient: Any, source: Path, folder: Path) -> Any:
    """The notebook with its outputs; a cell that fails is an error."""
    notebook = nbformat.read(source, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    return notebook


def results(notebook: Any) -> list[dict[str, str]]:
    """What cells end with, by kind."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [dict(output["data"]) for output in outputs if output["output_type"] == "execute_result"]


# What runs kernels warns of its own ways.
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(need: Need, repository: Path, tmp_path: Path) -> None:
    """Broken by: a cell that fails or warns, a report without HTML, a plot without SVG, another answer."""
    nbformat, nbclient = need("nbformat"), need("nbclient")
    for package in ("ipykernel", "pandas", "pyarrow"):
        need(package)
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "examples").symlink_to(repository / "examples")
    notebook = executed(nbformat, nbclient, repository / "docs" / "notebook.ipynb", folder)
    said = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert {output["output_type"] for output in said} == {"execute_result"}, said
    shown = results(notebook)
    assert sum("image/svg+xml" in result for result in shown) == 2
    (report,) = [one for one in shown if "ReplayReport" in one["text/plain"]]
    assert "500 requests, 8 workers, kv_router" in report["text/html"]
    assert [one["text/plain"] for one in shown if "text/html" not in one and "image/svg+xml" not in one] == [
        "{'round_robin': None, 'kv_router': 8}"
    ]
    assert (folder / "routing.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_notebook_is_kept_without_outputs(repository: Path) -> None:
    """Broken by: outputs of somebody's machine in the repository."""
    import json

    notebook = json.loads((repository / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
