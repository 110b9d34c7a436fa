"""Where the generalisation of trained jumping agents breaks, task by task; needs run folders with checkpoints."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pisces.agents.encoders import Encoder
from pisces.envs.jumping import Color, JumpingTask, optimal_actions
from pisces.errors import UserError
from pisces.metrics import Diagnosis, diagnose
from pisces.metrics.alignment import TOLERANCE
from pisces.reports.embeddings import load_jumping, optimal_encoder
from pisces.reports.results import StoredRun
from pisces.reports.tables import escape_markdown, markdown
from pisces.trajectories import Trajectory

POSITIONS, HEIGHTS = range(21, 46, 6), (11, 15, 19)
"""Where the unseen tasks are: all over the grid; those that a run trained on are left out."""
DISCOUNT = 0.99
STRAY_LIMIT = 1 / (1 - DISCOUNT)
"""No policy strays further than this, so a bound that is as large says nothing."""
NOTE = (
    "The agent's embedding against the policy similarity metric (discount 0.99), between the optimal episodes of the "
    "training tasks and of a few unseen tasks. Aligned: states whose nearest training state in the embedding is one "
    "that behaves most alike. No match: states to which no training state comes nearer than 0.5, so that there is no "
    "behaviour to carry over. Bound: how far, at most, behaviour carried over by the metric strays from the optimal "
    "one (Theorem 1; discounted wrong decisions); 0 is a guarantee, 100 or more says nothing. The last two depend on "
    "the tasks alone, not on the agent."
)


@dataclass(frozen=True)
class RunDiagnosis:
    """What is found of one run's agent."""

    found: Diagnosis
    """The unseen tasks one by one, in the order of `tasks`."""
    tasks: tuple[JumpingTask, ...]
    """The unseen tasks."""
    solved: tuple[bool, ...]
    """Whether the agent solves each."""

    @property
    def largest_bound(self) -> float:
        """The largest of Theorem 1's bounds."""
        return max(self._bounds)

    @property
    def _bounds(self) -> list[float]:
        return [one.transfer_bound or 0.0 for one in self.found.environments]

    def breaks_most(self) -> str:
        """The task with the largest regret, in words; empty if there is no regret."""
        (worst,) = self.found.worst(1)
        return worst.name if worst.regret > TOLERANCE else ""

    def words(self) -> str:
        """The diagnosis in a few sentences."""
        found, count = self.found, len(self.tasks)
        told = [
            f"{percent(found.alignment)} of the states of {count} unseen tasks lie beside a training state that "
            "behaves most alike."
        ]
        if name := self.breaks_most():
            place = [one.name for one in found.environments].index(name)
            share = percent(found.environments[place].alignment)
            outcome = "solves it nevertheless" if self.solved[place] else "fails there"
            told.append(f"It breaks most with the {name}, where {share} do; the agent {outcome}.")
        if found.unmatched_share:
            told.append(f"{percent(found.unmatched_share)} have no training state that behaves alike.")
        sure, idle = (sum(map(test, self._bounds)) for test in (_is_sure, _is_idle))
        silent = f", and says nothing of {idle}" if idle else ""
        told.append(f"Theorem 1 guarantees that behaviour carries over to {sure} of the {count}{silent}.")
        return " ".join(told)


def _is_sure(bound: float) -> bool:
    return bound <= TOLERANCE


def _is_idle(bound: float) -> bool:
    return bound >= STRAY_LIMIT - TOLERANCE


def percent(share: float) -> str:
    """A share as text."""
    return f"{100 * share:.1f} %"


def diagnose_run(run: StoredRun) -> RunDiagnosis:
    """Compares a jumping run's embedding with the policy similarity metric, on tasks that it did not train on."""
    names = ("obstacle_position", "floor_height", "color")
    training = tuple(sorted({JumpingTask(*(task[name] for name in names)) for task in run.result["train_tasks"]}))
    color: Color = "red" if run.config.get("colors") else "white"
    unseen = tuple(t for p in POSITIONS for h in HEIGHTS if (t := JumpingTask(p, h, color)) not in training)
    if not training or not unseen:
        raise UserError(f"expected training and unseen tasks, got {len(training)} and {len(unseen)}")
    tasks = training + unseen
    parts = np.split(load_jumping(run).embed_all(_encoder(tasks)), len(tasks))
    episodes = [Trajectory(part, optimal_actions(task)) for task, part in zip(tasks, parts, strict=True)]
    known, new = episodes[: len(training)], episodes[len(training) :]
    # The observations are embeddings already.
    found = diagnose(known, new, lambda vectors: vectors, DISCOUNT, names=[task_name(task) for task in unseen])
    outcomes = dict(zip(map(tuple, run.result["tasks"]), run.result["solved"], strict=True))
    solved = [outcomes[task.obstacle_position, task.floor_height, task.color] == "1" for task in unseen]
    return RunDiagnosis(found, unseen, tuple(solved))


@lru_cache(maxsize=2)
def _encoder(tasks: tuple[JumpingTask, ...]) -> Encoder:
    """Runs on one grid share their tasks, and come one after the other."""
    return optimal_encoder(tasks)


def task_name(task: JumpingTask) -> str:
    """Names a task as the page does."""
    color = "" if task.color == "white" else f"{task.color} "
    return f"{color}obstacle at {task.obstacle_position}, floor at {task.floor_height}"


def diagnosis_markdown(diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> str:
    """One row per run: label and diagnosis."""
    header = ("run", "unseen tasks", "aligned", "no match", "largest bound", "breaks most with", "in words")
    rows = [
        (
            *(escape_markdown(label), str(len(one.tasks)), percent(one.found.alignment)),
            *(percent(one.found.unmatched_share), f"{one.largest_bound:.1f}", one.breaks_most() or "–", one.words()),
        )
        for label, one in diagnoses
    ]
    return f"## Where generalisation breaks\n\n{NOTE}\n\n{markdown(header, rows)}"


def diagnosis_csv(diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> str:
    """One line per run and unseen task."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    numbers = ("states", "alignment", "regret", "unmatched_share", "transfer_bound")
    writer.writerow(["run", "obstacle_position", "floor_height", "color", "solved", *numbers])
    for label, one in diagnoses:
        for task, solved, found in zip(one.tasks, one.solved, one.found.environments, strict=True):
            values = [f"{getattr(found, name):.6g}" for name in numbers]
            writer.writerow([label, task.obstacle_position, task.floor_height, task.color, int(solved), *values])
    return buffer.getvalue()


def packed_diagnosis(label: str, one: RunDiagnosis) -> dict[str, Any]:
    """What the page shows of a run."""
    found = one.found
    return {
        "label": label,
        "words": one.words(),
        "aligned": round(100 * found.alignment, 3),
        "unmatched": round(100 * found.unmatched_share, 3),
        "bound": round(one.largest_bound, 3),
        "breaks": one.breaks_most(),
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
