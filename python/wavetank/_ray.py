"""Points of a sweep as tasks of a Ray cluster.

Inputs are put into Ray's object store once, by what is in them; every worker process lays out each of them
once, in a folder of its own, and runs points from there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wavetank import _wavetank
from wavetank._notices import notify
from wavetank.errors import UnsupportedError

if TYPE_CHECKING:
    import ray

    Content: TypeAlias = "bytes | dict[str, bytes]"
    # The path of an input, the hash of what is in it, and where that is.
    Stored: TypeAlias = "tuple[str, str, ray.ObjectRef[Content]]"

# Workers that are lost, by a machine that goes away or by running out of memory, are no reason to give up.
RETRIES = 5
# How names of folders of worker processes begin.
FOLDER = "wavetank-ray-"


class Cluster:
    """Runs points on the cluster this process is connected to, or one it finds or starts."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._ray = _connected()
        self._task = self._ray.remote(point).options(**{"max_retries": RETRIES, **options})
        self._stored: dict[str, ray.ObjectRef[Content]] = {}
        self._lock = threading.Lock()
        # While one point runs on a processor, the next one is on its way.
        self.in_flight = max(2, int(2 * self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, job: str, inputs: dict[str, str]) -> Task:
        stored = [(path, digest, self._store(path, digest)) for path, digest in inputs.items()]
        return Task(self._ray, self._task.remote(job, stored))

    def _store(self, path: str, digest: str) -> ray.ObjectRef[Content]:
        with self._lock:
            if digest not in self._stored:
                self._stored[digest] = self._ray.put(_content(Path(path)))
            return self._stored[digest]


def _connected() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError("Ray is not installed", "executor", "pip install '.[ray]'") from error
    if not ray.is_initialized():
        try:
            ray.init(address="auto")
        except ConnectionError:
            ray.init()
            notify(["there is no Ray cluster here: one was started on this machine"])
    return ray


def _content(path: Path) -> Content:
    if not path.is_dir():
        return path.read_bytes()
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


class Task:
    """A future of a point that can be cancelled where it runs."""

    def __init__(self, cluster: Any, answer: ray.ObjectRef[str]) -> None:
        self._ray = cluster
        self._answer = answer
        self._future: Future[str] = answer.future()

    def add_done_callback(self, tell: Callable[[object], object]) -> None:
        self._future.add_done_callback(tell)

    def result(self) -> str:
        return self._future.result()

    def cancel(self) -> None:
        self._ray.cancel(self._answer)


def point(job: str, stored: list[Stored]) -> str:
    """Run a job in a worker process; what is wrong with it is part of the answer, not a reason to try again."""
    inputs = {path: digest for path, digest, _ in stored}
    places = {path: _place(path, digest, content) for path, digest, content in stored}
    return _wavetank.run_point(job, inputs, places)


# Where inputs lie in this process, by path and content: one that is named twice has two places, so that what is
# said of it can be told apart.
_places: dict[tuple[str, str], str] = {}
# The folder of this process, and the pipe that holds it.
_folders: list[tuple[Path, int]] = []


def _place(path: str, digest: str, content: ray.ObjectRef[Content]) -> str:
    known = _places.get((path, digest))
    if known is not None:
        return known
    folder = _folder()
    whole = folder / digest
    if not whole.exists():
        _lay_out(whole, content)
    # A new folder each time: a task that was ended here may have left its own.
    place = Path(tempfile.mkdtemp(dir=folder)) / "input"
    place.symlink_to(whole)
    _places[path, digest] = str(place)
    return str(place)


def _lay_out(whole: Path, content: ray.ObjectRef[Content]) -> None:
    import ray

    found = ray.get(content)
    # Not there until it is all there: a task may be ended at any moment.
    part = whole.with_suffix(".part")
    if isinstance(found, bytes):
        part.write_bytes(found)
    else:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, data in found.items():
            (part / name).write_bytes(data)
    part.rename(whole)


def _folder() -> Path:
    if not _folders:
        made = Path(tempfile.mkdtemp(prefix=FOLDER))
        _folders.append((made, _bequeath(made)))
    return _folders[0][0]


def _bequeath(folder: Path) -> int:
    """Have a folder removed when this process ends, also when it is killed, as Ray ends its workers.

    A shell that is nobody's child waits for the end of a pipe; only this process has the other side of it.
    """
    theirs, ours = os.pipe()
    # What a shell runs in the background has no standard input unless it is given one by another number.
    script = 'trap "" INT TERM HUP; exec 3<&0; { read -r _; rm -rf -- "$0"; } <&3 >/dev/null 2>&1 &'
    subprocess.run(["sh", "-c", script, str(folder)], stdin=theirs, start_new_session=True, check=True)
    os.close(theirs)
    return ours
