"""What runs say beside their numbers, as Python's warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable

from wavetank import _wavetank
from wavetank.errors import WavetankWarning

_HERE = os.path.join(os.path.dirname(__file__), "")


def notify(messages: Iterable[str]) -> None:
    """Warn of each, where the code outside this package called."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, depth = frame.f_back, depth + 1
    for message in messages:
        warnings.warn(_wavetank.as_arguments(message), WavetankWarning, stacklevel=depth)
