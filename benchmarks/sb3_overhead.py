"""Share of training time that the callback takes: fast and slow agents with and without it, on one core.

PPO with a small network on MiniGrid is fast, PPO with the network of Atari agents (NatureCNN) on the same frames slow;
SAC takes a gradient step per environment step. Each learns the same number of steps with and without the callback.
Times are those of the process, not of the clock, so that neighbors disturb them less; the overhead is
(with - without) / without. ``python benchmarks/sb3_overhead.py > results/benchmarks/sb3_overhead.json`` records it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from pisces.envs.minigrid import LevelEnv
from pisces.experiments.minigrid.ppo import Features
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings

TASKS = [(level, theme) for level in (150, 151) for theme in (1000, 1001, 1002, 1003)]
SMALL = {"features_extractor_class": Features, "net_arch": []}


def levels() -> list[gym.Env[Any, Any]]:
    return [LevelEnv("crossing", *task) for task in TASKS]


def pendulums() -> list[gym.Env[Any, Any]]:
    return [gym.make("Pendulum-v1", g=g) for g in (8.0, 9.0, 10.0)]


def ppo(**options: Any) -> PPO:
    environments = DummyVecEnv([lambda task=task: LevelEnv("crossing", *task) for task in TASKS])
    return PPO("CnnPolicy", environments, n_steps=128, n_epochs=4, seed=0, device="cpu", **options)


CASES: dict[str, tuple[Callable[[], Any], Callable[[], list[gym.Env[Any, Any]]], int, SimilaritySettings]] = {
    "PPO, small network": (lambda: ppo(policy_kwargs=SMALL), levels, 2048, SimilaritySettings()),
    "PPO, small network, `max_overhead=0.25`": (
        lambda: ppo(policy_kwargs=SMALL),
        levels,
        2048,
        SimilaritySettings(max_overhead=0.25),
    ),
    "PPO, NatureCNN": (ppo, levels, 1024, SimilaritySettings()),
    "SAC, vectors": (
        lambda: SAC("MlpPolicy", "Pendulum-v1", learning_starts=200, seed=0, device="cpu"),
        pendulums,
        1000,
        SimilaritySettings(every=500, layers="hidden"),
    ),
}


def seconds(make: Callable[[], Any], steps: int, callback: PolicySimilarityCallback | None) -> float:
    model = make()
    start = time.process_time()
    model.learn(steps, callback=callback)
    return time.process_time() - start


def measure(name: str) -> dict[str, Any]:
    make, environments, steps, settings = CASES[name]
    callback = PolicySimilarityCallback(GreedyPairs(environments(), max_steps=100), settings)
    plain, trained = seconds(make, steps, None), seconds(make, steps, callback)
    return {
        "agent": name,
        "steps": steps,
        "updates": callback.updates,
        "overhead": round((trained - plain) / plain, 3),
        "update_in_agent_steps": round((trained - plain) / max(callback.updates, 1) / (plain / steps), 1),
    }


def main() -> None:
    torch.set_num_threads(1)
    seconds(CASES["SAC, vectors"][0], 300, None)  # the first run pays for imports and compilation
    print(json.dumps([measure(name) for name in CASES], indent=1))


if __name__ == "__main__":
    main()
