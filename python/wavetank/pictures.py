"""Plots and pages of reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from wavetank import _check, _files, _markup, _wavetank
from wavetank._check import PathLike
from wavetank.errors import UsageError

Runs = list[tuple[str, dict[str, Any]]]


class Plot:
    """A picture that notebooks show."""

    def __init__(self, name: str, runs: Runs) -> None:
        self._runs = runs
        self.name = name
        self.svg = _wavetank.plot(name, runs)

    @cached_property
    def png(self) -> bytes:
        """The same in pixels, drawn when it is asked for."""
        return _wavetank.plot_png(self.name, self._runs)

    def save(self, path: PathLike) -> None:
        """Write it as .svg or .png."""
        name = _check.path("path", path)
        ending = os.path.splitext(name)[1].lower()
        if ending not in (".svg", ".png"):
            raise UsageError("is no name of a plot", name, "end it with .svg or .png")
        content = self.png if ending == ".png" else self.svg.encode()
        _files.write(name, content)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<wavetank.Plot: {self.name}>"


class Pictured:
    """What has plots and a page."""

    title = "wavetank"

    def _runs(self) -> Runs:
        raise NotImplementedError

    def to_html(self, title: str | None = None) -> str:
        """A page of its own that opens without a network."""
        return _wavetank.page(self.title if title is None else _check.text("title", title), self._runs())

    def save_html(self, path: PathLike, title: str | None = None) -> None:
        """Write that page."""
        name, content = _check.path("path", path), self.to_html(title)
        _files.write(name, content.encode())

    @property
    def plots(self) -> list[str]:
        """The names of its plots."""
        return _wavetank.plot_names(self._runs())

    def plot(self, name: str | None = None) -> Plot:
        """A plot of it: one of `plots`, the first unless it is named."""
        if name is None:
            names = self.plots
            if not names:
                raise UsageError("there is nothing to plot in it")
            name = names[0]
        return Plot(_check.text("name", name), self._runs())


class Page(Pictured):
    """Reports side by side."""

    def __init__(self, title: str, reports: Mapping[str, Mapping[str, Any]]) -> None:
        self.title = _check.text("title", title)
        self.reports = dict(_check.mapping("reports", reports))
        if not self.reports:
            raise UsageError("there must be at least one", "reports", '{"name": report, ...}')
        for name, report in self.reports.items():
            _check.mapping(f"reports[{name!r}]", report)

    def _runs(self) -> Runs:
        return [(name, dict(report)) for name, report in self.reports.items()]

    def _repr_html_(self) -> str:
        return _markup.frame(self.to_html())

    def __repr__(self) -> str:
        return f"<wavetank.Page: {', '.join(self.reports)}>"


def page(title: str, reports: Mapping[str, Mapping[str, Any]]) -> Page:
    """Reports side by side, each with its name: one page, and plots that show all of them.

    `page("Routers", {"round robin": one, "KV": other}).save_html("routers.html")`. Reports may be of several
    kinds, and may be dictionaries that were read from files.
    """
    return Page(title, reports)
