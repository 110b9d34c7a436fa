"""The jumping task as a finite MDP, and exact metrics between the states of two optimal episodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pisces.envs.jumping.dynamics import JumpingState, optimal_episode, transition
from pisces.envs.jumping.tasks import DECISIONS, JUMP, RIGHT, JumpingTask
from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric, optimal_policy, policy_similarity_metric


@dataclass(frozen=True)
class JumpingMDP:
    """The jumping task as a finite MDP."""

    mdp: FiniteMDP
    """Transitions and rewards; the last state is terminal."""
    states: tuple[JumpingState, ...]
    """The states but the terminal one, as the environment has them."""
    floor: NDArray[np.int64]
    """The states in which the agent stands on the floor, by increasing x up to the one before the obstacle."""
    episode: NDArray[np.int64]
    """The states of the optimal episode, [56]: walking, in the air, landed."""


@cache
def jumping_mdp(obstacle_position: int) -> JumpingMDP:
    """Lists the states that a white or red task can reach; the floor's height changes the frames, not the MDP."""
    task, start = JumpingTask(obstacle_position, 0), JumpingState()
    index, queue, entries = {start: 0}, [start], []
    for state in queue:
        for action in (RIGHT, JUMP):
            following, reward, _, terminated = transition(task, state, action)
            if not terminated and following not in index:
                index[following] = len(index)
                queue.append(following)
            entries.append((following, reward))
    terminal, size = len(index), len(index) + 1
    transitions, rewards = np.zeros((size, 2, size)), np.zeros((size, 2))
    for row, (following, reward) in enumerate(entries):
        transitions[row // 2, row % 2, index.get(following, terminal)] = 1
        rewards[row // 2, row % 2] = reward
    transitions[terminal, :, terminal] = 1
    walking = [index[JumpingState(x)] for x in range(task.steps_to_obstacle)]
    optimal = [index[state] for state in optimal_episode(task).states[:DECISIONS]]
    return JumpingMDP(FiniteMDP(transitions, rewards), tuple(index), np.array(walking), np.array(optimal))


@cache
def episode_bisimulation(task_x: JumpingTask, task_y: JumpingTask, discount: float) -> NDArray[np.float64]:
    """Bisimulation metric (maximum over actions, whole MDPs) between the states of two optimal episodes, [56, 56]."""
    x, y = _mdps(task_x, task_y)
    distance = bisimulation_metric(x.mdp, y.mdp, discount=discount, pairs=_episode_states(x, y)).distance
    return distance.reshape(len(x.episode), len(y.episode))


def episode_similarity(
    task_x: JumpingTask, task_y: JumpingTask, discount: float, epsilon: float = 0.0
) -> NDArray[np.float64]:
    """PSM of epsilon-suboptimal policies between the states of two optimal episodes, [56, 56].

    The policies take the other action with probability epsilon and are followed on the whole MDPs: a suboptimal action
    leads to the states that it leads to, unlike along the optimal episodes alone (Prop. C.3, arXiv:2101.05265).
    """
    _mdps(task_x, task_y)
    return _similarity(task_x.obstacle_position, task_y.obstacle_position, discount, epsilon)


def suboptimal_policy(mdp: FiniteMDP, discount: float, epsilon: float) -> NDArray[np.float64]:
    """The policy that takes the first optimal action with probability 1 - epsilon and the other one else, [n, 2]."""
    optimal = optimal_policy(mdp, discount)
    return np.asarray((1 - epsilon) * optimal + epsilon * (1 - optimal), dtype=np.float64)


@cache
def _similarity(position_x: int, position_y: int, discount: float, epsilon: float) -> NDArray[np.float64]:
    x, y = jumping_mdp(position_x), jumping_mdp(position_y)
    policy_x, policy_y = (suboptimal_policy(task.mdp, discount, epsilon) for task in (x, y))
    distance = policy_similarity_metric(
        x.mdp, y.mdp, discount=discount, policy_x=policy_x, policy_y=policy_y, pairs=_episode_states(x, y)
    ).distance
    return distance.reshape(len(x.episode), len(y.episode))


def _mdps(task_x: JumpingTask, task_y: JumpingTask) -> tuple[JumpingMDP, JumpingMDP]:
    if "green" in (task_x.color, task_y.color):
        raise UserError("expected white or red tasks, which end when the obstacle is struck; got a green one")
    return jumping_mdp(task_x.obstacle_position), jumping_mdp(task_y.obstacle_position)


def _episode_states(x: JumpingMDP, y: JumpingMDP) -> NDArray[np.int64]:
    return np.stack([np.repeat(x.episode, len(y.episode)), np.tile(y.episode, len(x.episode))], axis=1)
