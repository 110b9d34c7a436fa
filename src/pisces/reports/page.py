"""Self-contained HTML pages: one file that opens from disk, light or dark, without a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

from pisces.reports.figures import data_uri

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #ffffff; --soft: #6b6b70; --line: #d8d8dc; --tint: #f4f4f6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf0; --paper: #17171a; --soft: #a0a0a8; --line: #3a3a40; --tint: #222227; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 64rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 46rem; } .soft { color: var(--soft); font-size: .92rem; }
.lead { font-size: 1.15rem; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; } figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption { color: var(--soft); font-size: .9rem; }
table { border-collapse: collapse; margin: .5rem 0; } th, td { padding: .3rem .8rem .3rem 0; text-align: left;
  border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--tint); padding: .7rem .9rem; border-radius: 6px; overflow-x: auto; font-size: .88rem; }
.scroll { overflow-x: auto; }
"""


def page(title: str, body: Iterable[str]) -> str:
    """Puts a page together from its parts, which must be escaped already."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


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
