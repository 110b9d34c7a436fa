"""Turns equations into MathML while the pages are built, so that browsers need no script to show them.

In a page, ```` ```math ```` blocks hold displayed equations and ``$`...`$`` holds those within a line, both in LaTeX.
"""

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$`([^`\n]+)`\$")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

SET_MINUS, BACKSLASH, SUM = "\u29f5", "\\", "\u2211"
LIMITS = {"msub": "munder", "msubsup": "munderover"}
MATHML = "http://www.w3.org/1998/Math/MathML"


def on_page_markdown(markdown, page, config, files):
    """Replaces the equations of a page, other code blocks left alone."""
    parts = FENCED.split(markdown)
    return "".join(convert_block(part) if part.startswith("```") else convert_lines(part) for part in parts)


def convert_block(text):
    """A displayed equation if the block is one, else the block itself."""
    found = BLOCK.fullmatch(text)
    if found is None:
        return text
    return f'<div class="equation">{mathml(found[1], "block")}</div>'


def convert_lines(text):
    """Text with its equations replaced."""
    # Within a span, because Markdown takes an unknown element at the start of a line for a block of its own.
    return INLINE.sub(lambda found: f"<span>{mathml(found[1], 'inline')}</span>", text)


def mathml(latex, display):
    """One equation; an unknown command is an error instead of text in red."""
    made = convert(" ".join(latex.split()), display=display)
    if "merror" in made or "\\" in made:
        raise ValueError(f"expected LaTeX that can be shown, got {latex!r}")
    return with_limits(made)


def with_limits(made):
    """The same equation with limits above and below sums, in fractions too, and no sign that few fonts have."""
    ElementTree.register_namespace("", MATHML)
    root = ElementTree.fromstring(made)
    for node in root.iter():
        if node.text == SET_MINUS:
            node.tag, node.text = f"{{{MATHML}}}mo", BACKSLASH
        kind = node.tag.removeprefix(f"{{{MATHML}}}")
        if kind in LIMITS and node[0].text == SUM:
            node.tag = f"{{{MATHML}}}{LIMITS[kind]}"
            node[0].set("movablelimits", "false")
    return ElementTree.tostring(root, encoding="unicode")
