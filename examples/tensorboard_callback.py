"""Logs a behavioral loss to TensorBoard through the callback of Stable-Baselines3.

python examples/tensorboard_callback.py --logs logs && tensorboard --logdir logs
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from pisces.envs.minigrid import LevelEnv
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings

LEVELS = (150, 151, 152, 153)


def train(logs: Path, steps: int, updates: int = 20) -> PolicySimilarityCallback:
    """Trains PPO; the callback logs below `similarity/`."""
    environments = DummyVecEnv([lambda level=level: LevelEnv("crossing", level) for level in LEVELS])
    model = PPO("CnnPolicy", environments, n_steps=64, seed=0, device="cpu", tensorboard_log=str(logs))
    pairs = GreedyPairs([LevelEnv("crossing", level) for level in LEVELS], keep="best")
    callback = PolicySimilarityCallback(pairs, SimilaritySettings(updates=updates, max_overhead=0.25))
    model.learn(steps, callback=callback, log_interval=1)
    return callback


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path, default=Path("logs"))
    parser.add_argument("--steps", type=int, default=20_000)
    arguments = parser.parse_args()
    clock = train(arguments.logs, arguments.steps).clock
    print(f"{1000 * clock.seconds_per_update:.1f} ms per update, {clock.overhead:.0%} of the agent's own time")
