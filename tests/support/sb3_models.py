"""Small models of Stable-Baselines3 on the toy environments."""

from __future__ import annotations

import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from toy_family import ToyEnv

SETTINGS = {
    PPO: {"n_steps": 32, "batch_size": 32, "n_epochs": 2},
    A2C: {},
    DQN: {"learning_starts": 20, "buffer_size": 200, "train_freq": 4},
    SAC: {"learning_starts": 20, "buffer_size": 200, "train_freq": 4, "batch_size": 16},
    TD3: {"learning_starts": 20, "buffer_size": 200, "train_freq": 4, "batch_size": 16},
}


class Extractor(BaseFeaturesExtractor):
    """A layer that learns, where Stable-Baselines3 has none."""

    def __init__(self, space):
        super().__init__(space, 16)
        self.layer = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(space.shape)), 16))

    def forward(self, observations):
        return torch.relu(self.layer(observations))


def environments(levels=(0, 1, 2), **arguments):
    return [ToyEnv(level, **arguments) for level in levels]


def vectorized(levels=(0, 1, 2), **arguments):
    return DummyVecEnv([lambda level=level: ToyEnv(level, **arguments) for level in levels])


def make_model(
    algorithm=PPO,
    seed=0,
    extractor=Extractor,
    env=None,
    kind="vector",
    continuous=False,
    levels=(0, 1, 2),
    policy=None,
    **settings,
):
    name = policy or ("CnnPolicy" if kind == "image" else "MlpPolicy")
    arguments = {"features_extractor_class": extractor} if extractor and name == "MlpPolicy" else {}
    env = vectorized(levels, kind=kind, continuous=continuous) if env is None else env
    return algorithm(name, env, seed=seed, device="cpu", policy_kwargs=arguments, **SETTINGS[algorithm] | settings)


def parameters(model):
    return torch.cat([value.detach().flatten() for value in model.policy.parameters()])
