"""Pictures of Distracting Control: ``python studies/distracting_figures.py results docs/images [runs]``.

Learning curves are drawn from results, frames of all tasks and clips from the environments, and animations of episodes
before an unseen video from the GIFs of finished runs, where there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pisces.envs.distracting.env import DistractingEnv
from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.envs.distracting.videos import find_videos
from pisces.experiments.distracting.episodes import animation
from pisces.experiments.distracting.figures import curve_figures
from pisces.experiments.distracting.gains import find_gains
from pisces.experiments.distracting.tables import NO_RUNS, by_cell
from pisces.experiments.registry import all_experiments
from pisces.reports.results import read_runs

CURVES, SCENES, CLIPS = "distracting_curves.png", "distracting_scenes.png", "distracting_clips.png"
SIZE, MARGIN, TITLE = 84, 4, 14
"""Sizes in pixels: of a frame, between frames, of a line of text."""


def scenes() -> Image.Image:
    """All tasks of the paper, a column each: without distraction, before both training clips and two test clips."""
    rows = [
        ("plain", "train", 0),
        ("paper", "train", 0),
        ("paper", "train", 1),
        ("paper", "test", 0),
        ("paper", "test", 1),
    ]
    columns = [[_frame(task, *row) for row in rows] for task in PAPER_TASKS]
    return _sheet([list(row) for row in zip(*columns, strict=True)], list(PAPER_TASKS))


def _frame(task: str, variant: str, videos: str, video: int) -> NDArray[np.uint8]:
    env = DistractingEnv(task, variant, videos, frame_size=SIZE)
    try:
        env.reset(seed=1, options={"background_seed": 0, "video": video})
        return env.render()
    finally:
        env.close()


def clips() -> Image.Image:
    """One frame of every built-in clip: 2 for training, 30 for tests, 10 for validation, row by row."""
    frames = [
        videos.load(number, SIZE)[0]
        for videos in map(find_videos, ("train", "test", "validation"))
        for number in range(len(videos))
    ]
    return _sheet([frames[first : first + 14] for first in range(0, len(frames), 14)], [])


def _sheet(rows: Sequence[Sequence[NDArray[np.uint8]]], titles: Sequence[str]) -> Image.Image:
    """Puts frames into rows and columns."""
    step, top = SIZE + MARGIN, 2 * TITLE if titles else 0
    sheet = Image.new("RGB", (step * len(rows[0]) - MARGIN, top + step * len(rows) - MARGIN), "white")
    for column, title in enumerate(titles):
        ImageDraw.Draw(sheet).text((step * column, 0), title.replace("-", "-\n"), fill="black")
    for row, frames in enumerate(rows):
        for column, frame in enumerate(frames):
            sheet.paste(Image.fromarray(frame), (step * column, top + step * row))
    return sheet.quantize(256)


def main(results: Path, images: Path, finished: Path | None = None) -> None:
    """Draws everything that the folders have data for."""
    images.mkdir(parents=True, exist_ok=True)
    scenes().save(images / SCENES)
    clips().save(images / CLIPS)
    figures = curve_figures(read_runs([results], all_experiments()).of("distracting"))
    if not figures:
        print(NO_RUNS.strip())
        return
    _, figure = next(iter(figures.values()))
    figure.savefig(images / CURVES, dpi=110)
    for gain in find_gains(by_cell(read_runs([finished or results], all_experiments()).of("distracting"))):
        film = animation(gain) if (gain.init, gain.method) == ("random", "drq") else None
        if film is not None:
            (images / f"distracting_{gain.task}.gif").write_bytes(film)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
