"""States in which an agent does not act as the expert, and their neighbors in its embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.errors import UserError
from pisces.metrics.trajectory import is_discrete
from pisces.trajectories import Trajectory
from pisces.validation import as_integers

Act = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps observations [n, ...] to the agent's greedy actions, integers [n]."""


@dataclass(frozen=True)
class FailingState:
    """A state of an unseen environment in which the agent's action is not the expert's."""

    step: int
    """The place of the state in the trajectory."""
    expert_action: int
    """The action of the trajectory."""
    agent_action: int
    """The agent's greedy action."""
    neighbor: tuple[int, int]
    """The nearest training state in the embedding: number of the trajectory, and step."""
    neighbor_action: int
    """The expert's action there."""
    neighbor_distance: float
    """The metric's distance to it."""
    nearest_distance: float
    """The metric's distance to the nearest training state."""
    nearest: tuple[int, int]
    """The nearest training state by the metric, the first of several: number of the trajectory, and step."""
    nearest_action: int
    """The expert's action there."""

    @property
    def follows_neighbor(self) -> bool:
        """Whether the agent acts as the expert does in the neighbor, and not as in this state."""
        return self.agent_action == self.neighbor_action

    def text(self) -> str:
        """The state in one line."""
        trajectory, step = self.neighbor
        return (
            f"step {self.step}: expert {self.expert_action}, agent {self.agent_action}; nearest in the embedding: "
            f"training trajectory {trajectory}, step {step} (expert {self.neighbor_action}), distance "
            f"{self.neighbor_distance:.3g}, nearest by the metric {self.nearest_distance:.3g}"
        )


@dataclass(frozen=True)
class Comparison:
    """The states of an unseen trajectory and of all training trajectories, compared by a metric and an embedding."""

    training: Sequence[Trajectory]
    """The training trajectories, N states together."""
    trajectory: Trajectory
    """The unseen trajectory, T states."""
    metric: NDArray[np.float64]
    """The metric, [N, T]."""
    neighbors: NDArray[np.int64]
    """The nearest training state of each unseen state in the embedding, [T]."""


def failing_states(comparison: Comparison, chosen: NDArray[np.int64]) -> tuple[FailingState, ...]:
    """The states of a trajectory in which the agent's actions [T] are not the expert's."""
    expert, neighbors = expert_actions(comparison.trajectory), comparison.neighbors
    known = np.concatenate([expert_actions(one) for one in comparison.training])
    nearest = comparison.metric.argmin(axis=0)
    places = [(number, step) for number, one in enumerate(comparison.training) for step in range(len(one))]
    return tuple(
        FailingState(
            step,
            int(expert[step]),
            int(chosen[step]),
            places[neighbors[step]],
            int(known[neighbors[step]]),
            float(comparison.metric[neighbors[step], step]),
            float(comparison.metric[nearest[step], step]),
            places[nearest[step]],
            int(known[nearest[step]]),
        )
        for step in np.flatnonzero(chosen != expert).tolist()
    )


def agent_actions(act: Act, trajectory: Trajectory) -> NDArray[np.int64]:
    """The agent's actions in the states of a trajectory, [T]."""
    chosen = as_integers("the actions of act", act(trajectory.observations), "[T]")
    if chosen.shape != (len(trajectory),):
        raise UserError(f"act must return one action per state, [{len(trajectory)}], got {chosen.shape}")
    return chosen


def expert_actions(trajectory: Trajectory) -> NDArray[np.int64]:
    """The discrete actions of a trajectory, [T]; of policies, the most probable ones."""
    if trajectory.actions is None:
        assert trajectory.policies is not None
        return np.asarray(trajectory.policies.argmax(axis=1), dtype=np.int64)
    if not is_discrete(trajectory.actions):
        raise UserError("act needs trajectories with discrete actions; leave it out for continuous ones")
    actions = np.asarray(trajectory.actions, dtype=np.int64)
    if actions.size != len(actions):
        raise UserError(f"act needs trajectories with one action per state, got actions {list(actions.shape)}")
    return actions.reshape(-1)
