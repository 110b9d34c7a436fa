"""Diagnosis of trained jumping agents on unseen tasks; needs run folders with checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pisces.agents.imitation.encoders import Encoder
from pisces.envs.jumping import Color, JumpingTask, optimal_actions
from pisces.errors import UserError
from pisces.experiments.jumping.report.embeddings import load_jumping, optimal_encoder
from pisces.metrics import Diagnosis, diagnose
from pisces.metrics.alignment import TOLERANCE
from pisces.reports.results import StoredRun
from pisces.reports.tables import csv_text, escape_markdown, markdown
from pisces.trajectories import Trajectory

POSITIONS, HEIGHTS = range(21, 46, 6), (11, 15, 19)
"""Positions and heights of the unseen tasks, spread over the grid; training tasks of a run are left out."""
DISCOUNT = 0.99
STRAY_LIMIT = 1 / (1 - DISCOUNT)
"""Largest possible discounted number of wrong decisions; a bound as large as this is vacuous."""
NOTE = (
    "The agent's embedding against the policy similarity metric (discount 0.99), between the optimal episodes of the "
    "training tasks and of a few unseen tasks. Aligned: states whose nearest training state in the embedding is also "
    "nearest in the metric. No match: states without a training state within distance 0.5; the agent may still "
    "act well there. Bound: the largest discounted number of wrong decisions of the policy that the metric "
    "transfers (Theorem 1); 0 is a guarantee, 100 or more is vacuous. The last two depend on the tasks alone, "
    "not on the agent."
)


@dataclass(frozen=True)
class RunDiagnosis:
    """Diagnosis of one run's agent."""

    found: Diagnosis
    """Results for the unseen tasks, in the order of `tasks`."""
    tasks: tuple[JumpingTask, ...]
    """The unseen tasks."""
    solved: tuple[bool, ...]
    """Whether the agent solves each unseen task."""

    @property
    def largest_bound(self) -> float:
        """The largest of Theorem 1's bounds."""
        return max(self._bounds)

    @property
    def _bounds(self) -> list[float]:
        return [one.transfer_bound or 0.0 for one in self.found.environments]

    def worst_task(self) -> str:
        """Returns the name of the task with the largest regret; empty if there is no regret."""
        (worst,) = self.found.worst(1)
        return worst.name if worst.regret > TOLERANCE else ""

    def summary(self) -> str:
        """Returns the diagnosis in a few sentences."""
        found, count = self.found, len(self.tasks)
        sentences = [
            f"In {percent(found.alignment)} of the states of {count} unseen tasks, the nearest training state in the "
            "embedding is also nearest in the metric."
        ]
        if name := self.worst_task():
            place = [one.name for one in found.environments].index(name)
            share = percent(found.environments[place].alignment)
            outcome = "still solves it" if self.solved[place] else "fails it"
            sentences.append(f"The worst task is the {name} ({share}); the agent {outcome}.")
        if found.unmatched_share:
            sentences.append(f"{percent(found.unmatched_share)} have no matching training state.")
        guaranteed, vacuous_count = (sum(map(test, self._bounds)) for test in (_is_guaranteed, _is_vacuous))
        vacuous = f"; its bound is vacuous for {vacuous_count}" if vacuous_count else ""
        sentences.append(
            f"The policy that the metric transfers, not this agent, is guaranteed to solve {guaranteed} of the {count} "
            f"(Theorem 1{vacuous}). This agent solves {sum(self.solved)}."
        )
        return " ".join(sentences)


def _is_guaranteed(bound: float) -> bool:
    return bound <= TOLERANCE


def _is_vacuous(bound: float) -> bool:
    return bound >= STRAY_LIMIT - TOLERANCE


def percent(share: float) -> str:
    """Formats a share as a percentage."""
    return f"{100 * share:.1f} %"


def diagnose_run(run: StoredRun) -> RunDiagnosis:
    """Compares a jumping run's embedding with the policy similarity metric, on tasks that it did not train on."""
    names = ("obstacle_position", "floor_height", "color")
    training = tuple(sorted({JumpingTask(*(task[name] for name in names)) for task in run.result["train_tasks"]}))
    color: Color = "red" if run.config.colors else "white"
    unseen = tuple(t for p in POSITIONS for h in HEIGHTS if (t := JumpingTask(p, h, color)) not in training)
    if not training or not unseen:
        raise UserError(f"a diagnosis needs training and unseen tasks, got {len(training)} and {len(unseen)}")
    tasks = training + unseen
    parts = np.split(load_jumping(run).embed_all(_encoder(tasks)), len(tasks))
    episodes = [Trajectory(part, optimal_actions(task)) for task, part in zip(tasks, parts, strict=True)]
    known, new = episodes[: len(training)], episodes[len(training) :]
    # The observations are embeddings already.
    found = diagnose(known, new, lambda vectors: vectors, discount=DISCOUNT, names=[task_name(task) for task in unseen])
    outcomes = dict(zip(map(tuple, run.result["tasks"]), run.result["solved"], strict=True))
    solved = [outcomes[task.obstacle_position, task.floor_height, task.color] == "1" for task in unseen]
    return RunDiagnosis(found, unseen, tuple(solved))


@lru_cache(maxsize=2)
def _encoder(tasks: tuple[JumpingTask, ...]) -> Encoder:
    """Cached, because runs on one grid have the same tasks and follow each other."""
    return optimal_encoder(tasks)


def task_name(task: JumpingTask) -> str:
    """Returns the name of a task, as the page writes it."""
    color = "" if task.color == "white" else f"{task.color} "
    return f"{color}obstacle at {task.obstacle_position}, floor at {task.floor_height}"


def diagnosis_markdown(diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> str:
    """Returns a Markdown table with one row per run."""
    header = ("run", "unseen tasks", "aligned", "no match", "largest bound", "worst task", "summary")
    rows = [
        (
            *(escape_markdown(label), str(len(one.tasks)), percent(one.found.alignment)),
            *(percent(one.found.unmatched_share), f"{one.largest_bound:.1f}", one.worst_task() or "–", one.summary()),
        )
        for label, one in diagnoses
    ]
    return f"## Where generalization breaks\n\n{NOTE}\n\n{markdown(header, rows)}"


def diagnosis_csv(diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> str:
    """Returns CSV text with one line per run and unseen task."""
    numbers = ("states", "alignment", "regret", "unmatched_share", "transfer_bound")
    rows: list[list[Any]] = [["run", "obstacle_position", "floor_height", "color", "solved", *numbers]]
    for label, one in diagnoses:
        for task, solved, found in zip(one.tasks, one.solved, one.found.environments, strict=True):
            values = [f"{getattr(found, name):.6g}" for name in numbers]
            rows.append([label, task.obstacle_position, task.floor_height, task.color, int(solved), *values])
    return csv_text(rows)


def packed_diagnosis(label: str, one: RunDiagnosis) -> dict[str, Any]:
    """Packs what the page shows of a run."""
    found = one.found
    return {
        "label": label,
        "summary": one.summary(),
        "aligned": round(100 * found.alignment, 3),
        "unmatched": round(100 * found.unmatched_share, 3),
        "bound": round(one.largest_bound, 3),
        "worst": one.worst_task(),
        "tasks": [
            {
                "name": task.name,
                "solved": solved,
                "aligned": round(100 * task.alignment, 3),
                "unmatched": round(100 * task.unmatched_share, 3),
                "regret": round(task.regret, 4),
                "bound": round(task.transfer_bound or 0.0, 3),
            }
            for task, solved in zip(found.environments, one.solved, strict=True)
        ],
    }
