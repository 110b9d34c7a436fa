"""Levels as finite MDPs with their optimal policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pisces.envs.minigrid import LevelEnv
from pisces.envs.minigrid.dynamics import State
from pisces.metrics import FiniteMDP
from pisces.metrics.mdp.planning import Plan, policy_iteration

DISCOUNT = 0.9
"""Of the expert; any discount gives the shortest way to the goal."""


@dataclass(frozen=True, eq=False)
class SolvedLevel:
    """A level with all its states and its optimal policy."""

    mdp: FiniteMDP
    """The level as an MDP; its last state is the terminal one."""
    states: tuple[State, ...]
    """The states before the terminal one; 0 is the start."""
    plan: Plan
    """Optimal values and all optimal actions."""

    @property
    def next_states(self) -> NDArray[np.int64]:
        """The state after each action, [S, A]."""
        return np.asarray(self.mdp.transitions.indices.reshape(self.mdp.rewards.shape), dtype=np.int64)

    def expert_episode(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The states from the start to the goal and the expert's actions, the first optimal one in each."""
        actions, following = self.plan.policy.argmax(axis=1), self.next_states
        states = [0]
        while following[states[-1], actions[states[-1]]] < len(self.states):
            states.append(int(following[states[-1], actions[states[-1]]]))
        return np.array(states), actions[states]


@cache
def solve_level(family: str, number: int) -> SolvedLevel:
    """Enumerates a level's states and computes its optimal policy."""
    mdp = FiniteMDP.enumerate(LevelEnv(family, number, observation="state"))
    states = tuple(tuple(map(int, observation)) for observation in mdp.observations[:-1])
    return SolvedLevel(mdp, states, policy_iteration(mdp, DISCOUNT))
