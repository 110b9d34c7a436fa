"""A page of the distances between the states of two trajectories or MDPs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.reports.frames import frame_images, packed_frames
from pisces.reports.page import html as page
from pisces.reports.page.bundle import bundle

FloatArray = NDArray[np.float64]
MOST_STATES = 400
"""States shown per side; of more, every second, third, ... one."""
SHOWN_NUMBERS = 6
"""Numbers of an observation that are listed."""
SCRIPTS = ("dom", "decode", "text", "charts", "pairs", "matrix", "metric_page")
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")


@dataclass(frozen=True, eq=False)
class Side:
    """One of two trajectories or MDPs."""

    name: str
    """Its name."""
    observations: NDArray[Any] | None = None
    """Observations of its states [n, ...]; frames are drawn, numbers listed."""
    actions: Sequence[int | str] | None = None
    """The actions in its states [n], if they are discrete: numbers or names."""
    in_sequence: bool = True
    """Whether the states follow each other, as those of a trajectory do."""


def metric_page(
    distance: FloatArray, nearest: NDArray[np.int64], title: str, sides: tuple[Side, Side], notes: Sequence[str] = ()
) -> str:
    """Returns a page on which one hovers over pairs of states.

    Args:
        distance: the distances, [n, m].
        nearest: for each state of x, the nearest of y, [n].
        title: the metric's name and discount.
        sides: where the rows (x) and the columns (y) come from.
        notes: what to know about the distances.
    """
    shown = [np.arange(0, count, -(-count // MOST_STATES)) for count in distance.shape]
    values = distance[np.ix_(*shown)].astype("<f4")
    data = {
        "title": title,
        "shape": values.shape,
        "distance": base64.b64encode(values.tobytes()).decode(),
        "states": [own.tolist() for own in shown],
        "nearest": nearest[shown[0]].tolist(),
        "sides": [_packed_side(side, own) for side, own in zip(sides, shown, strict=True)],
    }
    names = " and ".join(escape(side.name) for side in sides)
    body = [
        f"<h1>How far apart are the states of {names}?</h1>",
        page.paragraph(_reading(shown, distance, sides), "soft"),
    ]
    body += [page.asset("metric_page.html"), *(page.paragraph(note, "soft") for note in notes)]
    script = bundle([page.asset(f"{name}.js") for name in SCRIPTS])
    libraries = [page.asset(name) for name in LIBRARIES]
    return page.page(f"pisces: {title}", body, data, script, libraries=libraries)


def _reading(shown: Sequence[NDArray[np.int64]], distance: FloatArray, sides: Sequence[Side]) -> str:
    path = "The green line leads through" if all(side.in_sequence for side in sides) else "Green dots mark"
    text = (
        f"Rows are the states of x, columns those of y; light is near. {path} the nearest state of y to each of x. "
        "Hover, touch, or use the arrow keys."
    )
    if any(len(own) < count for own, count in zip(shown, distance.shape, strict=True)):
        sizes = " x ".join(map(str, distance.shape))
        text += f" Of {sizes} distances, those of {len(shown[0])} x {len(shown[1])} states are shown."
    return text


def _packed_side(side: Side, shown: NDArray[np.int64]) -> dict[str, Any]:
    frames = None if side.observations is None else frame_images(side.observations[shown])
    numbers = None
    if side.observations is not None and frames is None and side.observations.dtype.kind in "buif":
        flat = side.observations[shown].reshape(len(shown), -1)
        numbers = [_listed(row) for row in flat]
    return {
        "name": side.name,
        "actions": None if side.actions is None else list(side.actions),
        "sequence": side.in_sequence,
        "frames": None if frames is None else packed_frames(frames),
        "numbers": numbers,
    }


def _listed(row: NDArray[Any]) -> str:
    more = ", ..." if row.size > SHOWN_NUMBERS else ""
    return ", ".join(f"{float(value):.3g}" for value in row[:SHOWN_NUMBERS]) + more
