"""Behavior cloning on MiniGrid levels, with policy similarity embeddings between the levels.

python examples/minigrid_cloning.py --steps 500
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import minigrid  # registers its environments
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from torch import nn

from pisces.losses import ContrastiveMetricLoss
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import Trajectory, collect

ENVIRONMENT = "MiniGrid-Empty-Random-6x6-v0"
LEFT, RIGHT, FORWARD = 0, 1, 2
assert minigrid.__version__


def expert_action(env: gym.Env) -> int:
    """Turns toward the goal, the column first, and walks."""
    base = env.unwrapped
    goal = next(
        (x, y)
        for x in range(base.width)
        for y in range(base.height)
        if getattr(base.grid.get(x, y), "type", "") == "goal"
    )
    dx, dy = goal[0] - base.agent_pos[0], goal[1] - base.agent_pos[1]
    wanted = (0 if dx > 0 else 2) if dx else (1 if dy > 0 else 3)
    turn = (wanted - base.agent_dir) % 4
    return FORWARD if turn == 0 else LEFT if turn == 3 else RIGHT


def expert_episode(seed: int) -> Trajectory:
    """The expert's episode in the level of a seed."""
    env = ImgObsWrapper(gym.make(ENVIRONMENT))
    return collect(env, lambda observation: expert_action(env), seed=seed)


def train(steps: int, levels: int = 5, weight: float = 0.1) -> list[float]:
    """Clones the expert of some levels; returns the loss of each step."""
    torch.manual_seed(0)
    episodes = [expert_episode(seed) for seed in range(levels)]
    observations = torch.from_numpy(np.concatenate([episode.observations for episode in episodes])).float() / 10
    actions = torch.from_numpy(np.concatenate([episode.actions for episode in episodes]))
    pairs = TrajectoryPairs(episodes, discount=0.9)
    encoder = nn.Sequential(
        nn.Flatten(), nn.Linear(observations[0].numel(), 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
    )
    policy, similarity = nn.Linear(64, 7), ContrastiveMetricLoss(64, scale=1.0, match_within=0.5)
    optimizer = torch.optim.Adam([*encoder.parameters(), *policy.parameters(), *similarity.parameters()], lr=1e-3)
    losses = []
    for _ in range(steps):
        rows = torch.randint(len(actions), (64,))
        loss = nn.functional.cross_entropy(policy(encoder(observations[rows])), actions[rows])
        losses.append(loss.item())
        pair = pairs.sample()
        x, y = (encoder(part.float() / 10) for part in (pair.observations_x, pair.observations_y))
        loss = loss + weight * similarity(x, y, pair.metric)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--weight", type=float, default=0.1)
    arguments = parser.parse_args()
    found = train(arguments.steps, weight=arguments.weight)
    print(f"cloning loss {found[0]:.3f} -> {found[-1]:.3f}")
