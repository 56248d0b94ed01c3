"""The native half of the package: what `crates/py` exports."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypedDict, final, type_check_only

__all__ = [
    "Points",
    "Requests",
    "Trace",
    "__version__",
    "as_arguments",
    "bench",
    "compare",
    "main",
    "page",
    "plot",
    "plot_names",
    "plot_png",
    "replay",
    "replay_flags",
    "run_point",
    "sweep",
    "sweep_json",
    "to_json",
    "validate",
]
__version__: str

@type_check_only
class Wanted(TypedDict):
    """What is wanted of a replay besides its report."""

    seeds: int | None
    capture: bool
    jsonl: str | os.PathLike[str] | None
    advise: str | None
    price: str | None

@type_check_only
class WantedSweep(TypedDict):
    """How a sweep is run."""

    outputs: Sequence[str]
    threads: int | None
    shard: str | None
    fresh: bool
    max_points: int | None

def as_arguments(text: str) -> str: ...
def main(words: Sequence[str]) -> int: ...
def replay_flags() -> list[str]: ...
def replay(
    flags: dict[str, Any],
    wanted: Wanted,
    progress: Callable[[int, int | None], object] | None = None,
) -> tuple[dict[str, Any], Requests | None]: ...
def bench(
    flags: dict[str, Any], progress: Callable[[int, int | None], object] | None = None
) -> tuple[dict[str, Any], str | None]: ...
def validate(
    folder: str | os.PathLike[str], tolerance: float | None
) -> tuple[dict[str, Any], str, str | None]: ...
def compare(
    sides: tuple[str | tuple[str, dict[str, Any]], str | tuple[str, dict[str, Any]]],
    fail_if: Sequence[str],
    within: Sequence[str],
) -> tuple[dict[str, Any], str, list[str]]: ...
def sweep(
    spec: dict[str, Any] | str,
    wanted: WantedSweep,
    executor: object | None = None,
    progress: Callable[[int, int | None], object] | None = None,
) -> tuple[dict[str, Any], Points, str]: ...
def run_point(job: str, inputs: dict[str, str], places: dict[str, str] | None = None) -> str: ...
def sweep_json(report: dict[str, Any]) -> str: ...
def to_json(report: dict[str, Any]) -> str: ...
def page(title: str, reports: Sequence[tuple[str, dict[str, Any]]]) -> str: ...
def plot_names(reports: Sequence[tuple[str, dict[str, Any]]]) -> list[str]: ...
def plot(name: str, reports: Sequence[tuple[str, dict[str, Any]]]) -> str: ...
def plot_png(name: str, reports: Sequence[tuple[str, dict[str, Any]]]) -> bytes: ...
@final
class Points:
    def __new__(cls, columns: bytes) -> Points: ...
    def __getnewargs__(self) -> tuple[bytes]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Requests:
    def __new__(cls, pickled: bytes) -> Requests: ...
    def __getnewargs__(self) -> tuple[bytes]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> dict[str, Any]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Trace:
    def __new__(
        cls, files: Sequence[str], *, format: str | None = None, trace_block_size: int | None = None
    ) -> Trace: ...
    def __getnewargs_ex__(self) -> tuple[tuple[list[str]], dict[str, Any]]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
