"""What tests share: where the examples and the command are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture(scope="session")
def command() -> str:
    """The binary that cargo built, or the script of the package."""
    found = os.environ.get("WAVETANK_BINARY") or shutil.which("wavetank")
    assert found, "neither the binary nor the script of the package is there"
    return found
