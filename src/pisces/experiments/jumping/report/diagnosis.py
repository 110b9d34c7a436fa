"""Diagnosis of trained jumping agents on unseen tasks; needs run folders with checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.agents.imitation.encoders import Encoder
from pisces.envs.jumping import Color, JumpingTask, optimal_actions
from pisces.errors import UserError
from pisces.experiments.jumping.report.embeddings import load_jumping, optimal_encoder
from pisces.experiments.jumping.report.page import DIAGNOSIS_NOTE
from pisces.metrics import Diagnosis, diagnose
from pisces.metrics.alignment import TOLERANCE
from pisces.metrics.embedding.failures import FailingState
from pisces.reports.results import StoredRun
from pisces.reports.tables import csv_text, escape_markdown, markdown
from pisces.trajectories import Trajectory

POSITIONS, HEIGHTS = range(21, 46, 6), (11, 15, 19)
"""Positions and heights of the unseen tasks, spread over the grid; training tasks of a run are left out."""
DISCOUNT = 0.99
ACTIONS = ("move right", "jump")
"""Names of the actions."""
BOUND_NOTE = (
    "Bound: the largest discounted number of wrong decisions of another policy, which the metric transfers from the "
    "training tasks (Theorem 1). It depends on the tasks alone and says nothing about the agent."
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
    training: tuple[JumpingTask, ...] = ()
    """The training tasks, to which neighbors of failing states belong."""

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
        count, solved = len(self.tasks), sum(self.solved)
        sentences = [f"The agent solves {solved} of {count} unseen tasks."]
        first = [failures[0] for failures in self._failures if failures]
        if first:
            misled = sum(state.follows_neighbor for state in first)
            sentences.append(
                f"In {misled} of the {len(first)} tasks where it acts differently from the expert, its first wrong "
                "action is the optimal one in the nearest training state of its embedding."
            )
        share = percent(self.found.alignment)
        sentences.append(
            f"In {share} of all states, the nearest training state in the embedding is also nearest in the metric."
        )
        if name := self.worst_task():
            place = [one.name for one in self.found.environments].index(name)
            own = percent(self.found.environments[place].alignment)
            sentences.append(f"The embedding is worst for this task: {name} ({own}).")
        return " ".join(sentences)

    @property
    def _failures(self) -> list[tuple[FailingState, ...]]:
        return [one.failures for one in self.found.environments]


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
    vectors = load_jumping(run).embed_all(_encoder(tasks))
    chosen = np.concatenate([agent_actions(run, task) for task in tasks])
    # The observations are numbers of states, whose embeddings and actions are known already.
    numbers = np.split(np.arange(len(vectors))[:, None], len(tasks))
    episodes = [Trajectory(own, optimal_actions(task)) for task, own in zip(tasks, numbers, strict=True)]
    known, new = episodes[: len(training)], episodes[len(training) :]
    found = diagnose(
        *(known, new, lambda states: vectors[states[:, 0]]),
        discount=DISCOUNT,
        names=[task_name(task) for task in unseen],
        act=lambda states: chosen[states[:, 0]],
    )
    outcomes = dict(zip(map(tuple, run.result["tasks"]), run.result["solved"], strict=True))
    solved = [outcomes[task.obstacle_position, task.floor_height, task.color] == "1" for task in unseen]
    return RunDiagnosis(found, unseen, tuple(solved), training)


def agent_actions(run: StoredRun, task: JumpingTask) -> NDArray[np.int64]:
    """Returns a run's actions in the states of a task's optimal episode, [56].

    Actions in the air and behind the obstacle change nothing; there the expert's stand for the agent's.
    """
    actions = np.array(optimal_actions(task), dtype=np.int64)
    place = run.result["tasks"].index([task.obstacle_position, task.floor_height, task.color])
    stored = run.result["actions"][place][: task.jump_step + 1]
    actions[: len(stored)] = [int(action) for action in stored]
    return actions


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
    return f"## Where generalization breaks\n\n{DIAGNOSIS_NOTE} {BOUND_NOTE}\n\n{markdown(header, rows)}"


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
        "solved": sum(one.solved),
        "aligned": round(100 * found.alignment, 3),
        "unmatched": round(100 * found.unmatched_share, 3),
        "worst": one.worst_task(),
        "tasks": [
            {
                "name": entry.name,
                "task": _packed_task(task),
                "solved": solved,
                "aligned": round(100 * entry.alignment, 3),
                "unmatched": round(100 * entry.unmatched_share, 3),
                "regret": round(entry.regret, 4),
                "failure": _packed_failure(entry.failures[0], one.training) if entry.failures else None,
            }
            for task, entry, solved in zip(one.tasks, found.environments, one.solved, strict=True)
        ],
    }


def _packed_failure(state: FailingState, training: Sequence[JumpingTask]) -> dict[str, Any]:
    """Packs the first state in which the agent does not act as the expert, and its neighbors."""

    def neighbor(place: tuple[int, int], action: int, distance: float) -> dict[str, Any]:
        task = _packed_task(training[place[0]])
        return {"task": task, "step": place[1], "action": ACTIONS[action], "distance": round(distance, 4)}

    return {
        "step": state.step,
        "expert": ACTIONS[state.expert_action],
        "agent": ACTIONS[state.agent_action],
        "neighbor": neighbor(state.neighbor, state.neighbor_action, state.neighbor_distance),
        "nearest": neighbor(state.nearest, state.nearest_action, state.nearest_distance),
    }


def _packed_task(task: JumpingTask) -> dict[str, Any]:
    return {"position": task.obstacle_position, "height": task.floor_height, "color": task.color}
