"""PPO of Stable-Baselines3 on MiniGrid, with and without policy similarity embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor

from pisces.agents.cloning.networks import FEATURES, CloningNetwork, join_blocks
from pisces.envs.minigrid import LevelEnv
from pisces.envs.minigrid.experts import steps_to_goal
from pisces.envs.minigrid.render import TILE
from pisces.experiments.minigrid.config import EVALUATIONS, MiniGridConfig
from pisces.experiments.minigrid.evaluation import final_results, solved_shares
from pisces.experiments.minigrid.mdp import solve_level
from pisces.experiments.minigrid.ppo_settings import PPOSettings
from pisces.experiments.minigrid.tasks import Task, training_tasks
from pisces.integrations.observations import greedy_actions
from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback, SimilaritySettings
from pisces.pairs import TrajectoryPairs
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import RunFolder
from pisces.trajectories import Trajectory

ENVIRONMENTS = 24
"""Least number of environments that run at once; each training task has at least one."""
PPO_ARGUMENTS = {"n_steps": 64, "batch_size": 256, "ent_coef": 0.01, "gamma": 0.9}
SOLVED = 0.5
"""Return above which a greedy episode has reached the goal."""


class GuidedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Adds a reward for each step nearer to the goal, and takes it back for each step away from it.

    Args:
        env: the level.
        weight: reward per step.
    """

    env: LevelEnv

    def __init__(self, env: LevelEnv, weight: float) -> None:
        super().__init__(env)
        self.weight, self._steps = weight, steps_to_goal(env.dynamics)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        before = self._steps.get(self.env.state, 0)
        observation, reward, terminated, truncated, info = self.env.step(action)
        after = 0 if info["solved"] else self._steps.get(self.env.state, before)
        return observation, reward + self.weight * (before - after), terminated, truncated, info


class Features(BaseFeaturesExtractor):
    """The encoder of the cloning agent."""

    def __init__(self, observation_space: spaces.Box) -> None:
        super().__init__(observation_space, FEATURES)
        channels, height, width = observation_space.shape
        self.encoder = CloningNetwork((height, width, channels), 1, TILE).encoder

    def forward(self, observations: Tensor) -> Tensor:
        """Features [n, 64] of images [n, C, H, W]."""
        images = 255 * observations.permute(0, 2, 3, 1)  # Stable-Baselines3 has divided by 255
        features: Tensor = self.encoder(join_blocks(images, TILE))
        return features


def run(config: MiniGridConfig, folder: RunFolder, listeners: Sequence[Listener]) -> None:
    """Trains the config's agent and writes the result."""
    torch.set_num_threads(config.threads)
    started = time.process_time()
    model, callbacks = make_agent(config)
    progress = _ProgressCallback(config, listeners)
    assert isinstance(config.settings, PPOSettings)
    model.learn(config.settings.steps, callback=[*callbacks, progress])
    folder.write_info({"processor_seconds": round(time.process_time() - started, 1), "device": "cpu"})
    found = final_results(config, partial(greedy_actions, model))
    folder.write_result(config, {**found, "curve": progress.rows})


def make_agent(config: MiniGridConfig) -> tuple[PPO, list[BaseCallback]]:
    """PPO on the config's training tasks, and the callback if its method has one."""
    settings, tasks = config.settings, training_tasks(config)
    assert isinstance(settings, PPOSettings)
    count = max(ENVIRONMENTS, len(tasks))
    makers: list[Callable[[], gym.Env[Any, Any]]] = [
        partial(_guided_env, config, tasks[index % len(tasks)], settings.shaping) for index in range(count)
    ]
    model = PPO(
        "CnnPolicy",
        DummyVecEnv(makers),
        learning_rate=settings.learning_rate,
        n_epochs=settings.epochs,
        policy_kwargs={"features_extractor_class": Features, "net_arch": []},
        seed=config.seed,
        device="cpu",
        **PPO_ARGUMENTS,  # type: ignore[arg-type]
    )
    if settings.similarity == "none":
        return model, []
    similarity = SimilaritySettings(
        updates=settings.updates,
        pairs=settings.pairs,
        match_within=settings.match_within,
        start=settings.start,
        every=0,
        learning_rate=settings.similarity_rate,
        temperature=settings.temperature,
        scale=settings.scale or None,
        seed=config.seed,
    )
    return model, [PolicySimilarityCallback(_make_pairs(config, settings, tasks), similarity)]


def _make_env(config: MiniGridConfig, task: Task) -> LevelEnv:
    return LevelEnv(config.family, task.level, task.theme)


def _guided_env(config: MiniGridConfig, task: Task, weight: float) -> GuidedEnv:
    return GuidedEnv(_make_env(config, task), weight)


def _make_pairs(config: MiniGridConfig, settings: PPOSettings, tasks: Sequence[Task]) -> GreedyPairs | TrajectoryPairs:
    environments = [_make_env(config, task) for task in tasks]
    shared: dict[str, Any] = {
        "discount": settings.discount,
        "match_within": settings.match_within,
        "seed": config.seed,
    }
    if settings.similarity == "greedy":
        return GreedyPairs(
            environments,
            refresh=settings.refresh,
            keep="best",
            min_return=SOLVED,
            max_steps=environments[0].max_steps,
            **shared,
        )
    episodes = []
    for env, task in zip(environments, tasks, strict=True):
        level = solve_level(config.family, task.level)
        states, actions = level.expert_episode()
        episodes.append(Trajectory(env.renderer.frames([level.states[state] for state in states]), actions))
    return TrajectoryPairs(episodes, **shared)


class _ProgressCallback(BaseCallback):
    """Tells listeners how far training is, and evaluates on training and validation tasks."""

    def __init__(self, config: MiniGridConfig, listeners: Sequence[Listener]) -> None:
        super().__init__()
        self.config, self.listeners = config, listeners
        self.rows: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._report()

    def _on_training_end(self) -> None:
        self._report()

    def _report(self) -> None:
        steps, total = self.model.num_timesteps, self.config.settings.steps
        assert isinstance(self.model, PPO)
        evaluation = None
        if steps * EVALUATIONS >= total * (len(self.rows) + 1):
            evaluation = {"iteration": steps, **solved_shares(self.config, partial(greedy_actions, self.model))}
            self.rows.append(evaluation)
        for listener in self.listeners:
            listener(Progress(steps, total, {}, evaluation))
