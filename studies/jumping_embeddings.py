"""Fig. 5: how agents embed the states of optimal episodes. ``python studies/jumping_embeddings.py RUNS`` stores it.

RUNS is a folder with trained agents, which results/ omits (`COMMAND` trains them, about 25 minutes on one core).
The embeddings are stored in results/jumping, so that the figure can be drawn again without the agents.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from pisces.envs.jumping import JumpingTask, decode_frames, optimal_heights, render_frames
from pisces.errors import UserError
from pisces.experiments.jumping.report.embeddings import (
    LABELED,
    LABELS,
    SHOWN_HEIGHT,
    SHOWN_POSITIONS,
    Distance,
    draw_points,
    load_jumping,
    optimal_encoder,
    project,
)
from pisces.experiments.jumping.report.tables import cell_of
from pisces.experiments.registry import all_experiments
from pisces.reports.figures import LINE_COLORS
from pisces.reports.results import StoredRun, read_runs

FILE = "embeddings.npz"
DIMENSIONS = 64
SKY = 20
"""Rows of the screen above all episodes, which are not drawn."""
EMBEDDED: Mapping[str, tuple[str, Distance]] = {
    "randconv+pse": ("PSEs", "cosine"),
    "randconv+psm-l2": ("PSM, l2 embedding", "euclidean"),
    "randconv+pi-bisimulation-cme": ("π*-bisimulation, CME", "cosine"),
}
"""Method -> title, and the distance that its loss trains: PSEs, then another embedding, then another metric."""
COMMAND = f"pisces sweep jumping --methods {','.join(EMBEDDED)} --grids wide --seeds 0 --out runs"
TASKS = tuple(JumpingTask(position, SHOWN_HEIGHT) for position in SHOWN_POSITIONS)


def reduced(vectors: NDArray[np.float32], dimensions: int = DIMENSIONS) -> NDArray[np.float16]:
    """Vectors [n, k] in fewer dimensions, such that inner products and distances change as little as possible."""
    wide = vectors.astype(np.float64)
    if wide.shape[1] > dimensions:
        _, directions = np.linalg.eigh(wide.T @ wide)
        wide = wide @ directions[:, ::-1][:, :dimensions]
    return wide.astype(np.float16)


def embed(run: StoredRun) -> NDArray[np.float16]:
    """How a run's agent embeds the states of the shown tasks, [6 * 56, k]."""
    return reduced(load_jumping(run).embed_all(optimal_encoder(TASKS)))


def pack(runs: Path, root: Path) -> Path:
    """Stores the embeddings of the agents below a folder."""
    found = read_runs([runs], all_experiments()).of("jumping")
    arrays = {}
    for method in EMBEDDED:
        own = [run for run in found if cell_of(run.config) == (method, "wide", False, 0.0) and run.has_checkpoint]
        if not own:
            raise UserError(f"no agent of {method} below {runs}; train it with: {COMMAND}")
        arrays[method] = embed(own[0])
    path = root / "jumping" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return path


def embeddings_figure(root: Path, projection: str = "umap") -> Figure | None:
    """The stored embeddings in the plane, after two of the episodes; None if nothing is stored."""
    path = root / "jumping" / FILE
    if not path.is_file():
        return None
    figure = Figure(figsize=(16.4, 4.2), layout="constrained")
    panels = figure.subplots(1, 1 + len(EMBEDDED))
    draw_episodes(panels[0])
    with np.load(path, allow_pickle=False) as stored:
        for axes, (method, (title, distance)) in zip(panels[1:], EMBEDDED.items(), strict=True):
            vectors = stored[method].astype(np.float64)
            points = project(vectors, projection, 0, distance).reshape(len(TASKS), -1, 2)
            draw_points(axes, dict(zip(SHOWN_POSITIONS, points, strict=True)))
            axes.set_title(f"{title} ({projection.upper()}, {distance})", fontsize=10)
    panels[1].legend(title="obstacle at", fontsize=7, title_fontsize=7, frameon=False)
    return figure


def draw_episodes(axes: Any) -> None:
    """Draws the labeled tasks' optimal episodes above each other: the agent in the color of the task's points."""
    screens = []
    for offset, position in enumerate(LABELED):
        task, color = JumpingTask(position, SHOWN_HEIGHT), LINE_COLORS[list(SHOWN_POSITIONS).index(position)]
        background = decode_frames(render_frames(task, np.array([-10]), np.array([0]))[0])[SKY:]
        steps = np.array([position - distance for distance in LABELS if distance <= position])
        frames = decode_frames(render_frames(task, steps, optimal_heights(task)[steps]))[:, SKY:]
        for frame, step in zip(frames, steps, strict=True):
            (top, left), (bottom, right) = (edge(np.argwhere(frame > background)) for edge in (_first, _last))
            corner = (left - 0.5, offset * len(background) + top - 0.5)
            size = (right - left + 1, bottom - top + 1)
            axes.add_patch(Rectangle(corner, *size, facecolor=color, edgecolor="black", linewidth=0.5))
            middle = [place + length / 2 for place, length in zip(corner, size, strict=True)]
            axes.text(*middle, str(position - step), color="white", fontsize=6.5, ha="center", va="center")
        screens.append(background)
    axes.imshow(np.concatenate(screens), cmap="gray", vmin=0, vmax=1.4, interpolation="nearest")
    axes.set_title("two optimal episodes: distance to the obstacle", fontsize=10)
    axes.set_axis_off()


def _first(places: NDArray[np.int64]) -> list[int]:
    return [int(value) for value in places.min(axis=0)]


def _last(places: NDArray[np.int64]) -> list[int]:
    return [int(value) for value in places.max(axis=0)]


def main(runs: tyro.conf.Positional[Path], out: Path = Path("results")) -> None:
    """Store the embeddings of trained agents for the figure of the documentation.

    Args:
        runs: Folder with the agents' runs.
        out: Root of the results.
    """
    print(pack(runs, out))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
