"""Lets the search find British spellings of the American words of the pages: they join the index, not the pages."""

import json
import re
from pathlib import Path

STEMS = {
    "behavior": "behaviour",
    "color": "colour",
    "neighbor": "neighbour",
    "favor": "favour",
    "center": "centre",
    "gray": "grey",
    "modeling": "modelling",
    "labeled": "labelled",
    "optimiz": "optimis",
    "generaliz": "generalis",
    "normaliz": "normalis",
    "regulariz": "regularis",
    "initializ": "initialis",
    "parametriz": "parametris",
    "minimiz": "minimis",
    "maximiz": "maximis",
    "quantiz": "quantis",
}
"""Parts of words, and how British English spells them."""
WORD = re.compile(rf"\b\w*(?:{'|'.join(STEMS)})\w*", re.IGNORECASE)


def british(text):
    """The British spellings of the words of a text that have another one, sorted, each once."""
    found = {word.lower() for word in WORD.findall(text)}
    for american, other in STEMS.items():
        found = {word.replace(american, other) for word in found}
    return sorted(found)


def on_post_build(config):
    """Adds spellings to the search index, after the search plugin wrote it and before it is packed for offline use."""
    path = Path(config["site_dir"]) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for entry in index["docs"]:
        words = british(f"{entry['title']} {entry['text']}")
        if words:
            entry["text"] += f"<p>British spelling: {', '.join(words)}</p>"
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")
