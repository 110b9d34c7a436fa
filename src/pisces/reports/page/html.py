"""Self-contained HTML pages: one file that opens from disk, light or dark, without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.figure import Figure

from pisces.reports.figures import data_uri


def asset(name: str) -> str:
    """Reads a file that is part of the page, from beside this module."""
    return files("pisces.reports.page").joinpath(name).read_text(encoding="utf-8")


def page(
    title: str, body: Iterable[str], data: Any = None, script: str = "", header: str = "", libraries: Sequence[str] = ()
) -> str:
    """Puts a page together from its parts, which must be escaped already.

    A page may fetch nothing and run nothing but these scripts.

    Args:
        title: title of the window.
        body: the parts of the main element.
        data: JSON values; `script` finds them, packed by `packed_json`, in the element of that id.
        script: an ES module without imports.
        header: what stands above the main element.
        libraries: scripts that run before `script`.
    """
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (*libraries, script) if text)
    policy = f"default-src 'none'; {f'script-src {hashes}; ' if hashes else ''}img-src data:; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<title>{escape(title)}</title><style>{asset("page.css")}</style></head>\n<body>{header}<main id="main">\n',
        "\n".join(body),
        "\n</main>",
        *(f"<script>{library}</script>\n" for library in libraries),
    ]
    if script:
        parts += [
            f'<script type="text/plain" id="data">{packed_json(data)}</script>\n<script type="module">{script}</script>'
        ]
    return "".join(parts) + "</body></html>\n"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def packed_json(data: Any) -> str:
    """JSON, compressed and in base64: a page of many runs stays small, and no character can end its element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{escape(kind)}">{escape(text)}</p>'


def image(figure: Figure | bytes, caption: str) -> str:
    """An embedded figure, or a PNG, with its caption, which is also what a screen reader says."""
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
