"""The callback's share of training time: PPO, DQN and SAC with and without it, on one core.

The agents learn the same number of steps on small images (PPO, DQN) or vectors (SAC). Times are of the processor, not
of the wall, so that neighbors disturb them less; the share is (with - without) / without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from pisces.envs.crossing import CrossingEnv
from pisces.experiments.crossing.run import CrossingFeatures
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings

LEVELS = tuple(range(8))
IMAGES = {"features_extractor_class": CrossingFeatures, "net_arch": []}


def grid() -> DummyVecEnv:
    return DummyVecEnv([lambda level=level: CrossingEnv(level) for level in LEVELS])


def copies() -> list[gym.Env[Any, Any]]:
    return [CrossingEnv(level) for level in LEVELS]


def pendulums() -> list[gym.Env[Any, Any]]:
    return [gym.make("Pendulum-v1", g=g) for g in (8.0, 9.0, 10.0)]


CASES: dict[str, tuple[Callable[[], Any], Callable[[], list[gym.Env[Any, Any]]], int, SimilaritySettings]] = {
    "PPO, 20 updates per 1024 steps": (
        lambda: PPO("CnnPolicy", grid(), n_steps=128, policy_kwargs=IMAGES, seed=0, device="cpu"),
        copies,
        8192,
        SimilaritySettings(),
    ),
    "DQN, 20 updates per 1000 steps": (
        lambda: DQN("CnnPolicy", grid(), policy_kwargs=IMAGES, learning_starts=500, train_freq=1, seed=0, device="cpu"),
        copies,
        8000,
        SimilaritySettings(every=1000),
    ),
    "SAC, 20 updates per 500 steps": (
        lambda: SAC("MlpPolicy", "Pendulum-v1", learning_starts=200, seed=0, device="cpu"),
        pendulums,
        1500,
        SimilaritySettings(every=500, layers="hidden"),
    ),
}


def seconds(make: Callable[[], Any], steps: int, callback: PolicySimilarityCallback | None) -> float:
    model = make()
    start = time.process_time()
    model.learn(steps, callback=callback)
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    for name, (make, environments, steps, settings) in CASES.items():
        callback = PolicySimilarityCallback(GreedyPairs(environments(), max_steps=200), settings)
        plain, trained = seconds(make, steps, None), seconds(make, steps, callback)
        print(
            f"{name}: {plain:.1f} s without, {trained:.1f} s with the callback ({callback.updates} updates): "
            f"{(trained - plain) / plain:+.0%}"
        )


if __name__ == "__main__":
    main()
