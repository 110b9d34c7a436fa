"""Small data for imitation agents, and what they have learned from it."""

import numpy as np
import torch

from pisces.agents.imitation import ImitationData
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_halves, stack_frames

TASKS = [JumpingTask(20, 10), JumpingTask(30, 15), JumpingTask(45, 20)]


def data_of(tasks=TASKS, metric=True):
    observations = np.concatenate([stack_frames(optimal_halves(task)) for task in tasks])
    actions = np.concatenate([optimal_actions(task) for task in tasks])
    episodes = np.arange(len(actions)).reshape(len(tasks), 1, -1)
    distances = np.random.default_rng(0).random((len(tasks), len(tasks), 56, 56)).astype(np.float32)
    return ImitationData(observations, actions, episodes, distances if metric else None)


def weights_after(agent, iterations):
    for _ in range(iterations):
        agent.train_iteration()
    return torch.cat([parameter.detach().flatten() for parameter in agent.parameters])
