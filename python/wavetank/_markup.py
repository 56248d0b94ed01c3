"""Numbers and words as HTML for notebooks: no styles or ids that could reach the page around them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def number(value: Any) -> str:
    """As the command's tables show it: two decimals, thousands apart, more digits where it is small."""
    if value is None:
        return "N/A"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if 0.0 < abs(value) < 1.0 else f"{value:,.2f}"


def percent(share: Any, digits: int = 1) -> str:
    """A share of one."""
    return "N/A" if share is None else f"{share * 100:.{digits}f} %"


def heading(text: str) -> str:
    """What it is about."""
    return f"<p><strong>{escape(text)}</strong></p>"


def paragraph(text: str) -> str:
    """A sentence."""
    return f"<p>{escape(text)}</p>"


def listing(texts: Iterable[str]) -> str:
    """Sentences one below the other; nothing where there are none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names rows."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(_row(row) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Sequence[str]) -> str:
    name, *cells = row
    shown = "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in cells)
    return f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>{shown}</tr>'


def picture(svg: str, words: str) -> str:
    """A plot inside HTML: as an image its styles stay its own."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<p><img alt="{escape(words)}" src="data:image/svg+xml;base64,{data}"></p>'


def frame(page: str) -> str:
    """A whole page inside HTML, apart from what is around it."""
    style = "width: 100%; height: 40em; border: 0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'
