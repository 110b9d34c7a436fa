"""Mutations of files and of command lines."""

from __future__ import annotations

import json
import random
from typing import Any

TOKENS = (b"NaN", b"1e999", b"-1", b"0", b"null", b"[]", b"{}", b'"', b"\x00" * 9, b"\xff" * 9, b"9" * 400, b"[" * 5000)
VALUES = (None, True, -1, 0, 1e308, 10**400, float("nan"), float("inf"), "", "../../x", "[/b]", "=1+1", [], {}, [[[]]])
WORDS = (
    "",
    "-1",
    "nan",
    "1e999",
    "9" * 30,
    "\x00",
    "[/x]",
    "é\n",
    "--",
    "--help",
    "none",
    "a" * 5000,
    "0-99999999999",
    "=",
)


def mutate_bytes(rng: random.Random, content: bytes) -> bytes:
    """Changes, cuts, repeats, removes or inserts some bytes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        place = rng.randrange(len(changed) + 1)
        width = min(rng.choice((1, 2, 8, 100)), len(changed) - place)
        kind = rng.randrange(8)
        if kind <= 2 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 3:
            changed[place : place + width] = rng.randbytes(width)
        elif kind == 4:
            del changed[place:]
        elif kind == 5:
            del changed[place : place + width]
        elif kind == 6:
            changed[place:place] = changed[place : place + width] or b"x"
        elif kind == 7:
            changed[place:place] = rng.choice(TOKENS)
    return bytes(changed)


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    """Replaces or removes a value anywhere in a JSON file."""
    root = json.loads(content)
    places: list[tuple[Any, Any]] = []
    queue: list[Any] = [root]
    while queue:
        node = queue.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        places += [(node, key) for key in keys]
        queue += [node[key] for key in keys]
    node, key = rng.choice(places)
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    else:
        node[key] = rng.choice(VALUES)
    return json.dumps(root).encode()


def mutate_words(rng: random.Random, words: list[str]) -> list[str]:
    """Replaces, removes, repeats, swaps or spoils words of a command line."""
    changed = list(words)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(changed)) if changed else 0
        kind = rng.randrange(6)
        if kind == 0 and changed:
            changed[place] = rng.choice(WORDS)
        elif kind == 1 and changed:
            del changed[place]
        elif kind == 2 and changed:
            changed.insert(place, changed[rng.randrange(len(changed))])
        elif kind == 3:
            changed.insert(place, rng.choice(WORDS))
        elif changed and changed[place]:
            letters = list(changed[place])
            letters[rng.randrange(len(letters))] = rng.choice("0-9=[]{}\\'\"%$~ \u202e")
            changed[place] = "".join(letters)
    return changed
