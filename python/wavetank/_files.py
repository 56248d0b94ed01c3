"""Files that are whole or not there, whatever ends the writing of them."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress


def write(path: str, content: bytes) -> None:
    """Write a file beside `path`, and give it that name when it is whole: until then, what was there stays."""
    place = os.path.realpath(path)
    if _stays(place):
        _fill(place, content)
        return
    part = os.path.join(os.path.dirname(place), f".part-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _fill(part, content)
        if os.path.exists(place):
            shutil.copymode(place, part)
        os.replace(part, place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        with suppress(OSError):
            os.remove(part)


def _stays(place: str) -> bool:
    """Whether it is written where it is: a pipe or a device, what may not be written or in no other place."""
    is_open = os.access(place, os.W_OK) and os.access(os.path.dirname(place), os.W_OK)
    return os.path.exists(place) and not (is_open and os.path.isfile(place))


def _fill(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
