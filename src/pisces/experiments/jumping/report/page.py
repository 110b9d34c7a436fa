"""The jumping task on the report page: its sections and scripts, and the data that they draw.

The page's scripts compute no physics and no metrics; they look up what is packed here. Long arrays are base64 strings.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping import Color, JumpingTask, play
from pisces.envs.jumping.dynamics import Episode
from pisces.envs.jumping.grids import GRID_HEIGHTS, GRID_POSITIONS
from pisces.envs.jumping.tasks import (
    AGENT_HEIGHT,
    AGENT_WIDTH,
    DECISIONS,
    JUMP_DISTANCE,
    OBSTACLE_HEIGHT,
    OBSTACLE_WIDTH,
    SCREEN,
)
from pisces.experiments.jumping.results import task_places
from pisces.reports.results import StoredRun

FloatArray = NDArray[np.float64]

ASSETS = files("pisces.experiments.jumping.report").joinpath("page_assets")
SCRIPTS = ("task", "episodes", "watch", "shares", "metric", "embedding", "diagnosis")
DISCOUNTS: Mapping[float, str] = {0.99: "0.99 (figures)", 0.999: "0.999 (training)"}
METRICS: Mapping[str, str] = {
    "psm": "policy similarity metric",
    "bisimulation": "bisimulation",
    "pi-bisimulation": "π*-bisimulation",
    "true": "true similarity (pixels to the obstacle)",
}
PARTS = {"train": "training", "validation": "validation", "heldout": "held out"}
"""Parts of the grid whose percentages stand beside the headline measure, with their titles."""
METRICS_FILE = "metrics.npz"
"""Distances between the tasks, stored because they take half a minute; see studies/pack_metrics.py."""
DIAGNOSIS_NOTE = (
    "The agent's embedding against the policy similarity metric (discount 0.99), between the optimal episodes of the "
    "training tasks and of a few unseen tasks. Aligned: states whose nearest training state in the embedding is also "
    "nearest in the metric. No match: states without a training state within distance 0.5, whatever the agent does "
    "there."
)
EPISODE_COLORS: tuple[Color, ...] = ("white", "green")
OUTCOMES = (
    *("reaches the end", "strikes the obstacle"),
    *(f"reaches the end, {ending}" for ending in ("struck on the floor", "struck in the air", "never struck")),
)
UNOBSTRUCTED = JumpingTask(GRID_POSITIONS[-1], GRID_HEIGHTS[0], "green")
"""A task whose episodes all reach the right edge, because green obstacles end none."""


def scripts() -> tuple[str, ...]:
    """Returns the scripts of the task's sections."""
    return tuple(ASSETS.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)


def sections() -> str:
    """The HTML of the task's sections, which the scripts fill."""
    text = ASSETS.joinpath("sections.html").read_text(encoding="utf-8")
    return text.replace("<!-- DIAGNOSIS -->", escape(DIAGNOSIS_NOTE))


def packed_run(run: StoredRun) -> dict[str, Any]:
    """Packs what the page shows of one run: percentages by part of the grid, solved tasks, actions, training tasks."""
    result, prefix = run.result, "red_" if run.config.colors else ""
    trained = np.zeros(len(result["tasks"]), dtype=np.bool_)
    places = task_places(run.config.colors)
    trained[
        [places[task["obstacle_position"], task["floor_height"], task["color"]] for task in result["train_tasks"]]
    ] = 1
    named = {title: result.get(f"{prefix}{part}_solved_percent") for part, title in PARTS.items()}
    return {
        "numbers": {title: None if value is None else round(float(value), 3) for title, value in named.items()},
        "solved": _bits(result["solved"]),
        "actions": _bits("".join(result["actions"])),
        "train": base64_text(np.packbits(trained)),
    }


@cache
def packed_task() -> dict[str, Any]:
    """Packs the sizes of what is drawn, and every episode that an agent can play.

    The agent's heights depend on the steps at which it jumps alone. How long an episode is and how it ends depends
    on the obstacle too; red obstacles end episodes as white ones do.
    """
    tasks = {color: [JumpingTask(p, GRID_HEIGHTS[0], color) for p in GRID_POSITIONS] for color in EPISODE_COLORS}
    plans = list(jump_plans(UNOBSTRUCTED.steps_to_obstacle))
    heights = [[state.height for state in _episode(UNOBSTRUCTED, plan).states] for plan in plans]
    return {
        "screen": SCREEN,
        "agent": [AGENT_WIDTH, AGENT_HEIGHT],
        "obstacle": [OBSTACLE_WIDTH, OBSTACLE_HEIGHT],
        "decisions": DECISIONS,
        "jump_distance": JUMP_DISTANCE,
        "positions": list(GRID_POSITIONS),
        "heights": list(GRID_HEIGHTS),
        "steps_to_obstacle": [task.steps_to_obstacle for task in tasks["white"]],
        "jump_steps": {color: [task.jump_step for task in tasks[color]] for color in tasks},
        "plans": plans,
        "plan_heights": base64_text(np.array(heights, dtype=np.uint8)),
        **_packed_endings(tasks, plans),
    }


def jump_plans(limit: int) -> Iterator[tuple[int, ...]]:
    """Lists the steps below `limit` at which an agent can jump: never, once, or again after landing."""
    yield ()
    for first in range(limit):
        yield (first,)
        states = _episode(UNOBSTRUCTED, (first,)).states
        yield from ((first, second) for second in range(first + 1, limit) if states[second].height == 0)


def _episode(task: JumpingTask, jumps: Sequence[int]) -> Episode:
    return play(task, (int(step in jumps) for step in range(DECISIONS)))


def _packed_endings(tasks: Mapping[Color, Sequence[JumpingTask]], plans: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Lengths of the episodes and places in the list of outcomes, bytes [positions, plans] for each color.

    They are 0 for plans that jump where the obstacle is already reached.
    """
    shape, lengths, endings = (len(GRID_POSITIONS), len(plans)), {}, {}
    for color, row in tasks.items():
        steps, outcomes = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
        for place in np.ndindex(shape):
            task, plan = row[place[0]], plans[place[1]]
            if max(plan, default=0) < task.steps_to_obstacle:
                episode = _episode(task, plan)
                steps[place], outcomes[place] = len(episode.rewards), OUTCOMES.index(_outcome(task, episode))
        lengths[color], endings[color] = base64_text(steps), base64_text(outcomes)
    return {"lengths": lengths, "outcomes": endings, "outcome_texts": OUTCOMES}


def _outcome(task: JumpingTask, episode: Episode) -> str:
    struck = episode.states[-1].struck
    if task.color != "green":
        return "strikes the obstacle" if struck else "reaches the end"
    where = {"floor": "struck on the floor", "air": "struck in the air", "": "never struck"}
    return f"reaches the end, {where[struck]}"


@cache
def packed_metrics() -> dict[str, Any]:
    """Packs the distances between the states of the optimal episodes of all pairs of obstacle positions.

    Each metric has a list of matrices, one per discount, or one for all. Distances of a metric are few, so they are
    stored as a list of values and a compressed array of places in it, uint16 [pairs, 56, 56].
    """
    with ASSETS.joinpath(METRICS_FILE).open("rb") as file, np.load(file, allow_pickle=False) as stored:
        matrices = {
            name: [
                _packed_matrices(stored[f"{name}_values_{discount}"], stored[f"{name}_index_{discount}"])
                for discount in metric_discounts(name)
            ]
            for name in METRICS
        }
    return {"titles": METRICS, "discounts": list(DISCOUNTS.items()), "matrices": matrices}


def metric_discounts(name: str) -> tuple[float, ...]:
    """Returns the discounts that a metric is stored for; the true similarity has none."""
    return (0.0,) if name == "true" else tuple(DISCOUNTS)


def _packed_matrices(values: FloatArray, index: NDArray[np.uint16]) -> dict[str, Any]:
    compressed = zlib.compress(index.astype("<u2").tobytes())
    return {"values": values.tolist(), "index": base64.b64encode(compressed).decode()}


def _bits(text: str) -> str:
    flags = np.frombuffer(text.encode(), dtype=np.uint8) == ord("1")
    return base64_text(np.packbits(flags))


def base64_text(array: NDArray[Any]) -> str:
    """Returns the bytes of an array as base64."""
    return base64.b64encode(array.tobytes()).decode()
