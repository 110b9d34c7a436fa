"""How well an agent's features agree with the policy similarity metric between the expert's states."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid.experts import expert_path
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.tasks import Task, make_renderer, training_tasks, unseen_tasks
from pisces.metrics import sequence_metric, total_variation
from pisces.metrics.embedding.agreement import embedding_agreement

DISCOUNT, MATCH_WITHIN = 0.9, 0.01
"""Discount of the metric, and the largest distance of a match; the same for all methods."""
JUDGED = 24
"""Number of unseen tasks that are judged, spread over all of them."""
Represent = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""Maps frames [n, H, W, 3] to features [n, k]."""


def judge_features(config: MiniGridConfig, represent: Represent) -> dict[str, float]:
    """Compares the expert's states in unseen tasks with those in training tasks.

    Returns:
        Spearman's correlation of cosine distances and the metric, the share of states whose nearest training state by
        the features is a nearest one by the metric, and the share of states with a match in training, which does not
        depend on the agent.
    """
    known, tasks = training_tasks(config), unseen_tasks(config, test=True)
    tasks = tasks[:: max(1, len(tasks) // JUDGED)][:JUDGED]
    metric = np.block([[_metric(config.family, x.level, y.level) for y in known] for x in tasks])
    rows, columns = (represent(np.concatenate([_frames(config.family, t) for t in part])) for part in (tasks, known))
    found = embedding_agreement(rows, metric, columns)
    return {
        "test_rank_correlation": round(found.rank_correlation, 4),
        "test_neighbor_agreement": round(found.neighbor_agreement, 4),
        "test_matched_share": round(float((metric.min(axis=1) <= MATCH_WITHIN).mean()), 4),
    }


@cache
def _path(family: str, level: int) -> tuple[list[tuple[int, ...]], list[int]]:
    return expert_path(make_renderer(family, Task(level, 0)).dynamics)


@cache
def _metric(family: str, level_x: int, level_y: int) -> NDArray[np.float64]:
    actions = (np.array(_path(family, level)[1]) for level in (level_x, level_y))
    return np.asarray(sequence_metric(total_variation(*actions), discount=DISCOUNT))


def _frames(family: str, task: Task) -> NDArray[np.uint8]:
    return make_renderer(family, task).frames(_path(family, task.level)[0])
