"""Embeddings of the states of optimal episodes by trained agents; needs run folders with checkpoints."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pisces.agents.imitation.encoders import Encoder, make_encoder
from pisces.envs.jumping import Color, JumpingTask, optimal_frames, stack_frames
from pisces.envs.jumping.grids import GRID_POSITIONS
from pisces.envs.jumping.tasks import DECISIONS
from pisces.errors import import_extra, unknown_name
from pisces.experiments.jumping.policy import JumpingPolicy, load_policy
from pisces.experiments.jumping.report.page import base64_text
from pisces.reports.figures import LINE_COLORS, plain_text
from pisces.reports.results import StoredRun
from pisces.runs.store import RunFolder

FloatArray = NDArray[np.float64]
Distance = Literal["cosine", "euclidean"]
HEIGHTS = (10, 15, 20)
SHOWN_POSITIONS, SHOWN_HEIGHT = range(20, 46, 5), 10
"""Tasks whose states are drawn as points."""
DIMENSIONS = 64
LABELS = range(44, 4, -5)
"""Distances to the obstacle that label points, up to the jump (14); they are as far apart as obstacles."""
LABELED = {30: (-3, "right"), 45: (3, "left")}
"""Obstacle positions whose points are labeled, with the offset of the label in points and its alignment."""


@dataclass(frozen=True)
class Embedding:
    """The states of many optimal episodes as one agent embeds them."""

    tasks: tuple[JumpingTask, ...]
    """The tasks, K of them."""
    directions: NDArray[np.int8]
    """Unit vectors [K, 56, k] times 127; their products are cosine similarities."""
    points: FloatArray
    """The states of the drawn tasks in the plane, [P, 56, 2]."""
    drawn: tuple[JumpingTask, ...]
    """The drawn tasks, P of them."""
    projection: str
    """Name of the projection that gave the points."""


def embed_run(run: StoredRun, projection: str, seed: int = 0) -> Embedding:
    """Embeds the optimal episodes of all obstacle positions and three floor heights with a run's agent."""
    color: Color = "red" if run.config.colors else "white"
    tasks, encoder = _episodes(color)
    vectors = load_jumping(run).embed_all(encoder).astype(np.float64)
    units = unit_vectors(vectors).reshape(len(tasks), DECISIONS, -1)
    drawn = tuple(t for t in tasks if t.obstacle_position in SHOWN_POSITIONS and t.floor_height == SHOWN_HEIGHT)
    chosen = vectors.reshape(units.shape)[[tasks.index(task) for task in drawn]]
    distance: Distance = "euclidean" if run.config.imitation.auxiliary == "l2" else "cosine"
    points = project(chosen.reshape(-1, units.shape[2]), projection, seed, distance)
    return Embedding(tasks, quantize(units), points.reshape(len(drawn), DECISIONS, 2), drawn, projection.upper())


def packed_embedding(label: str, embedding: Embedding) -> dict[str, Any]:
    """Packs the embedded states of one run."""
    return {
        "label": label,
        "color": embedding.tasks[0].color,
        "heights": list(HEIGHTS),
        "size": embedding.directions.shape[2],
        "directions": base64_text(embedding.directions),
        "points": base64_text(embedding.points.astype("<f4")),
        "positions": [task.obstacle_position for task in embedding.drawn],
        "drawn_height": SHOWN_HEIGHT,
        "projection": embedding.projection,
    }


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Vectors [n, k] scaled to length 1; zero vectors stay zero."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float64)


def load_jumping(run: StoredRun) -> JumpingPolicy:
    """Loads a run's agent."""
    return load_policy(RunFolder(run.folder), run.config)


@cache
def _episodes(color: Color) -> tuple[tuple[JumpingTask, ...], Encoder]:
    tasks = tuple(JumpingTask(p, h, color) for h in HEIGHTS for p in GRID_POSITIONS)
    return tasks, optimal_encoder(tasks)


def optimal_encoder(tasks: Sequence[JumpingTask]) -> Encoder:
    """Encoder with which `JumpingPolicy.embed_all` embeds the optimal episodes of tasks, one after the other."""
    observations = np.concatenate([stack_frames(optimal_frames(task)) for task in tasks])
    return make_encoder(observations, torch.device("cpu"))


def quantize(units: FloatArray, dimensions: int = DIMENSIONS) -> NDArray[np.int8]:
    """Quantizes unit vectors [..., k] to bytes in fewer dimensions, such that inner products change little.

    The dimensions are those of the largest singular values, without centering, which preserves inner products best.
    """
    flat = units.reshape(-1, units.shape[-1])
    if flat.shape[1] > dimensions:
        _, directions = np.linalg.eigh(flat.T @ flat)
        flat = flat @ directions[:, ::-1][:, :dimensions]
    return np.asarray(np.rint(127 * np.clip(flat, -1, 1)), dtype=np.int8).reshape(*units.shape[:-1], -1)


def project(vectors: FloatArray, projection: str, seed: int, distance: Distance = "cosine") -> FloatArray:
    """Projects vectors [n, k] to the plane, [n, 2], by UMAP or by their two principal components.

    Args:
        vectors: the embeddings.
        projection: "umap" or "pca".
        seed: of UMAP.
        distance: what the embedding was trained with: "cosine" for contrastive losses, "euclidean" for l2 embeddings.
    """
    if distance == "cosine":
        vectors = unit_vectors(vectors)
    if projection == "pca":
        centered = vectors - vectors.mean(axis=0)
        _, directions = np.linalg.eigh(centered.T @ centered)
        points = np.asarray(centered @ directions[:, :-3:-1], dtype=np.float64)
        return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # embeddings of one number have no second direction
    if projection != "umap":
        raise unknown_name("projection", projection, ("umap", "pca"))
    umap = import_extra("umap", "report")
    # Several states may have equal embeddings; UMAP's spectral initialization warns about them, PCA does not.
    layout = umap.UMAP(random_state=seed, n_jobs=1, init="pca", metric=distance)
    return np.asarray(layout.fit_transform(vectors), dtype=np.float64)


def has_umap() -> bool:
    """Whether umap-learn is installed."""
    return importlib.util.find_spec("umap") is not None


def embedding_figure(embeddings: Sequence[tuple[str, Embedding]]) -> Figure:
    """Draws embedded states: colors are tasks, numbers distances to the obstacle (Fig. 5)."""
    columns = min(3, len(embeddings))
    rows = -(-len(embeddings) // columns)
    figure = Figure(figsize=(4.4 * columns, 4.2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (name, embedding) in zip(panels, embeddings, strict=False):
        draw_points(
            axes, {task.obstacle_position: own for task, own in zip(embedding.drawn, embedding.points, strict=True)}
        )
        axes.set_title(plain_text(f"{name} ({embedding.projection})"), fontsize=10)
    for axes in list(panels):
        axes.set_axis_off()
    figure.axes[0].legend(title="obstacle at", fontsize=7, title_fontsize=7, frameon=False)
    return figure


def draw_points(axes: Any, points: Mapping[int, FloatArray]) -> None:
    """Draws the states [56, 2] of optimal episodes, by obstacle position."""
    for color, (position, own) in zip(LINE_COLORS, points.items(), strict=False):
        axes.scatter(*own.T, s=14, color=color, label=str(position), linewidths=0)
        if position in LABELED:
            _label_points(axes, position, own, color)
    axes.set_xticks([])
    axes.set_yticks([])


def _label_points(axes: Any, position: int, points: FloatArray, color: str) -> None:
    aside, alignment = LABELED[position]
    for step, point in enumerate(points):
        if position - step in LABELS:
            label = {"textcoords": "offset points", "ha": alignment, "va": "center", "fontsize": 7, "color": color}
            axes.annotate(str(position - step), point, (aside, 0), **label)
