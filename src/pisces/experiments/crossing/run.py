"""Training runs of the crossing; they take seconds, so an interrupted run starts again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from pisces.envs.crossing import STEPS, CrossingEnv
from pisces.errors import UserError
from pisces.experiments.crossing.config import (
    EVALUATIONS,
    MOST_TRAINING_LEVELS,
    TEST_LEVELS,
    VALIDATION_LEVELS,
    CrossingConfig,
)
from pisces.integrations.observations import greedy_actions
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import RunFolder
from pisces.trajectories import play_episodes

ROLLOUT = 16
"""Steps of each environment per rollout."""
PPO_SETTINGS = {"n_steps": ROLLOUT, "batch_size": 128, "n_epochs": 8, "ent_coef": 0.01, "gamma": 0.97}


class CrossingFeatures(BaseFeaturesExtractor):
    """Two small convolutions and a linear layer: what an image of a few pixels needs."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 64) -> None:
        super().__init__(observation_space, features_dim)
        channels, height, width = observation_space.shape
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        size = 16 * -(-height // 2) * -(-width // 2)
        self.linear = nn.Sequential(nn.Linear(size, features_dim), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        """Features [n, 64] of images [n, C, H, W]."""
        features: Tensor = self.linear(self.convolutions(observations))
        return features


def run(config: CrossingConfig, folder: RunFolder, listeners: Sequence[Listener]) -> None:
    """Trains the config's agent and writes the result."""
    torch.set_num_threads(config.threads)
    started = time.process_time()
    model, callbacks = make_agent(config)
    progress = _ProgressCallback(config, listeners)
    try:
        model.learn(config.settings.steps, callback=[*callbacks, progress])
    except ValueError as error:
        if "nan" not in str(error):  # which torch finds in the probabilities of actions
            raise
        raise UserError(
            f"the run {str(folder.path)!r} diverged; choose other settings, e.g. a lower learning rate"
        ) from error
    seconds = time.process_time() - started
    folder.write_info({"processor_seconds": round(seconds, 1), "device": "cpu"})
    folder.write_result(config, {**evaluate(model, config), "curve": progress.rows})


def make_agent(config: CrossingConfig) -> tuple[PPO, list[BaseCallback]]:
    """PPO on the config's training levels, and the callback if its method has one."""
    settings, levels = config.settings, config.training_levels()
    shared = [levels[index % len(levels)] for index in range(MOST_TRAINING_LEVELS)]
    environments = DummyVecEnv([partial(CrossingEnv, level, settings.contrast) for level in shared])
    model = PPO(
        "CnnPolicy",
        environments,
        learning_rate=settings.learning_rate,
        policy_kwargs={"features_extractor_class": CrossingFeatures, "net_arch": []},
        seed=config.seed,
        device="cpu",
        **PPO_SETTINGS,  # type: ignore[arg-type]
    )
    if not settings.similarity_rate:
        return model, []
    pairs = GreedyPairs(
        [CrossingEnv(level, settings.contrast) for level in levels],
        refresh=settings.refresh,
        discount=settings.discount,
        keep="best",
        last="self-loop",  # committed results take the last state of a truncated episode as absorbing
        max_steps=STEPS,
        seed=config.seed,
    )
    similarity = SimilaritySettings(
        updates=settings.updates,
        pairs=settings.pairs,
        every=0,
        match_within=settings.match_within,
        start=settings.similarity_start,
        learning_rate=settings.similarity_rate,
        temperature=settings.temperature,
        scale=settings.scale,
        seed=config.seed,
    )
    return model, [PolicySimilarityCallback(pairs, similarity)]


def evaluate(model: PPO, config: CrossingConfig, test: bool = True) -> dict[str, float]:
    """Share of levels that the greedy agent solves, in percent; deterministic, one episode each."""
    groups = {"train": config.training_levels(), "validation": VALIDATION_LEVELS}
    groups |= {"test": TEST_LEVELS} if test else {}
    shares = {}
    for name, levels in groups.items():
        environments = [CrossingEnv(level, config.settings.contrast) for level in levels]
        episodes = play_episodes(environments, lambda observations: greedy_actions(model, observations), STEPS)
        solved = [environment.distance == 0 for environment in environments]
        assert len(episodes) == len(solved)
        shares[f"{name}_levels_percent"] = round(100 * float(np.mean(solved)), 4)
    return shares


class _ProgressCallback(BaseCallback):
    """Tells listeners how far training is, and evaluates on training and validation levels."""

    def __init__(self, config: CrossingConfig, listeners: Sequence[Listener]) -> None:
        super().__init__()
        self.config, self.listeners = config, listeners
        self.rows: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        model, total = self.model, self.config.settings.steps
        assert isinstance(model, PPO)
        evaluation = None
        if model.num_timesteps >= total * (len(self.rows) + 1) / EVALUATIONS:
            shares = evaluate(model, self.config, test=False)
            evaluation = {"iteration": model.num_timesteps, **shares}
            self.rows.append(evaluation)
        for listener in self.listeners:
            listener(Progress(model.num_timesteps, total, {}, evaluation))
