"""What can go wrong, by what a caller can do about it."""

from __future__ import annotations


class Error(Exception):
    """What is wrong (`message`), where (`place`) and what to do about it (`hint`)."""

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, place, hint)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        advice = f"\nhint: {self.hint}" if self.hint else ""
        return f"{where}{self.message}{advice}"


class UsageError(Error, ValueError):
    """The arguments ask for something impossible."""


class InputError(Error, ValueError):
    """The content of a file is wrong."""


class IoError(Error, OSError):
    """The operating system refused."""


class UnsupportedError(Error, NotImplementedError):
    """A part that does not exist in this release."""


class StuckError(Error, RuntimeError):
    """A simulation cannot go on."""


class WavetankWarning(UserWarning):
    """What whoever reads the numbers should know."""
