"""Self-contained HTML pages: one file that opens from disk, light or dark, without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.figure import Figure

from pisces.reports.figures import data_uri


def asset(name: str) -> str:
    """Reads a file that is part of the page, from beside this module."""
    return files("pisces.reports.page").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: Iterable[str], data: Any = None, script: str = "") -> str:
    """Puts a page together from its parts, which must be escaped already.

    A page may fetch nothing and run nothing but `script`, which finds `data` as JSON in the element of that id.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; {allowed}img-src data:; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{escape(title)}</title><style>{asset('page.css')}</style></head>\n<body><main>\n",
        "\n".join(body),
        "\n</main>",
    ]
    if script:
        parts += [
            f'<script type="application/json" id="data">{embedded_json(data)}</script>\n<script>{script}</script>'
        ]
    return "".join(parts) + "</body></html>\n"


def embedded_json(data: Any) -> str:
    """JSON that can stand inside a script element: no character of it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{escape(kind)}">{escape(text)}</p>'


def image(figure: Figure, caption: str) -> str:
    """An embedded figure with its caption, which is also what a screen reader says."""
    return (
        f'<figure><img src="{data_uri(figure)}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def row(parts: Iterable[str]) -> str:
    """Parts side by side where the screen is wide enough."""
    return '<div class="row">' + "".join(parts) + "</div>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""

    def cells(values: Sequence[str], tag: str) -> str:
        kinds = [""] + [' class="number"'] * (len(values) - 1)
        return "".join(f"<{tag}{kind}>{escape(value)}</{tag}>" for kind, value in zip(kinds, values, strict=True))

    body = "".join(f"<tr>{cells(values, 'td')}</tr>" for values in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{cells(header, "th")}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def code(text: str) -> str:
    """A block of commands."""
    return f"<pre><code>{escape(text)}</code></pre>"
