"""Episodes of agents without and with PSEs, side by side before an unseen video."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from PIL import Image, ImageDraw, ImageSequence

from pisces.experiments.distracting.gains import Gain, find_gains
from pisces.experiments.distracting.tables import NAMES, by_cell
from pisces.experiments.experiment import PageSection
from pisces.files import read_bytes
from pisces.reports.results import StoredRun

EPISODE = "episode_test.gif"
FRAMES, ZOOM, COLORS, MILLISECONDS = 60, 3, 64, 80
"""Frames of an animation, their size relative to the agent's, their colors, and how long they are shown."""
LARGEST_FILM = 2**26
"""The largest file of an episode that is read, in bytes."""
MARGIN, TITLE = 4, 14
"""Pixels between the sides, and of the line above them."""


def page_section(runs: Sequence[StoredRun]) -> PageSection:
    """The animations of all tasks that have them, for the report page."""
    figures = []
    for gain in find_gains(by_cell(runs)):
        film = animation(gain)
        if film is not None:
            words = escape(f"{gain.task}, {gain.scene}, {gain.init} initialization: without PSEs, and with them")
            source = f"data:image/gif;base64,{base64.b64encode(film).decode()}"
            figures.append(f'<figure><img src="{source}" alt="{words}"><figcaption>{words}</figcaption></figure>')
    if not figures:
        return PageSection()
    title = "<h2>Distracting Control: episodes before an unseen video</h2>"
    note = "<p>Above each episode the mean return on unseen videos.</p>"
    return PageSection(html=f'<section id="distracting-episodes">{title}{note}{"".join(figures)}</section>')


def animation(gain: Gain) -> bytes | None:
    """A GIF of an episode without PSEs beside one with them; None if no seed has both."""
    for pair in gain.pairs:
        sides = [_read_frames(run.folder / EPISODE) for run in pair]
        if all(sides):
            return _gif([_beside(pair, frames) for frames in zip(*sides, strict=False)])
    return None


def _read_frames(path: Path) -> list[Image.Image]:
    """Some frames of the GIF of an episode; none if it is missing or damaged, which says nothing of the run."""
    try:
        with Image.open(io.BytesIO(read_bytes(path, LARGEST_FILM))) as film:
            frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]
    except (OSError, ValueError, IndexError, EOFError, SyntaxError, Image.DecompressionBombError):
        return []
    return frames[:: -(-len(frames) // FRAMES)]


def _beside(pair: Sequence[StoredRun], frames: Iterable[Image.Image]) -> Image.Image:
    large = [frame.resize((ZOOM * frame.width, ZOOM * frame.height), Image.Resampling.NEAREST) for frame in frames]
    width = large[0].width + MARGIN
    image = Image.new("RGB", (width * len(large) - MARGIN, TITLE + large[0].height), "white")
    for place, (run, frame) in enumerate(zip(pair, large, strict=True)):
        title = f"{NAMES[run.config.method]}: {run['test_return']:.0f}"
        ImageDraw.Draw(image).text((width * place, 0), title, fill="black")
        image.paste(frame, (width * place, TITLE))
    return image.quantize(COLORS)


def _gif(frames: Sequence[Image.Image]) -> bytes:
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0, optimize=True)
    return buffer.getvalue()
