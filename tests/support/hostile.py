"""Values that strangers or damage put into result files."""

from __future__ import annotations

import json

DEEP = json.loads("[" * 900 + "]" * 900)
HOSTILE = (
    *(None, True, -1, 0, 1e308, -1e308, 10**400, float("nan"), float("inf"), 2**63, 1e-320),
    *("", "x", "/../../../pwned/x", "=1+1", "<script>", "\x00", "\x1b[2J", "\ud800", "9" * 5000),
    *([], {}, [1], {"a": 1}, [[[]]], DEEP),
)


def places(value, path=()):
    """The paths of all values, of lists the first three."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))[:3]
    for key, part in items:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


def mutate(result, rng):
    """Replaces or removes one value of a result."""
    *path, last = rng.choice(list(places(result)))
    for key in path:
        result = result[key]
    if rng.random() < 0.15:
        del result[last]
    else:
        result[last] = rng.choice(HOSTILE)
