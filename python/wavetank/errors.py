"""What can go wrong, by what a caller can do about it."""

from __future__ import annotations

import os
import re

_OS_ERROR = re.compile(r"\(os error (\d{1,9})\)")


class Error(Exception):
    """What is wrong (`message`), where (`place`) and what to do about it (`hint`).

    `status` is what a server answered that refused.
    """

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        # Not those of the other class that it is: an OSError takes its arguments for a number and a path.
        Exception.__init__(self, message, place, hint)
        self.message = message
        self.place = place
        self.hint = hint
        self.status: int | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        advice = f"\nhint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{advice}"


class UsageError(Error, ValueError):
    """The arguments ask for something impossible."""


class InputError(Error, ValueError):
    """The content of a file is wrong."""


class IoError(Error, OSError):
    """The operating system, the network or a server refused.

    `filename` is the place; `errno` is the system's number where it gave one.
    """

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, place, hint)
        self.filename = place
        found = _OS_ERROR.search(message)
        if found:
            self.errno = int(found[1])
            self.strerror = os.strerror(self.errno)


class UnsupportedError(Error, NotImplementedError):
    """A part that does not exist in this release."""


class StuckError(Error, RuntimeError):
    """A simulation cannot go on."""


class WavetankWarning(UserWarning):
    """What whoever reads the numbers should know."""
