"""Whether agents represent a state alike with two backgrounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.agents.drq.agent import DrQAgent
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.data import (
    ALIGNMENT,
    make_env,
    play,
    replay,
    stack_observations,
    stream_seed,
)

EPISODES = 4
NEAR = 1
"""A state counts as found if the nearest one is at most this many decisions away."""


def alignment(config: DistractingConfig, agent: DrQAgent) -> dict[str, dict[str, float]]:
    """Plays greedy episodes, replays their actions with other backgrounds, and compares the two, by kind of videos.

    Returns:
        For "train" and "test" videos `found_percent`, how often the state that the actor's last hidden layer puts
        nearest, by cosine, is the same state; and `action_difference`, the mean absolute difference of the greedy
        actions in the same state.
    """
    return {videos: _compare(config, agent, videos) for videos in ("train", "test")}


def _compare(config: DistractingConfig, agent: DrQAgent, videos: str) -> dict[str, float]:
    env = make_env(config, videos)
    found, difference = [], []
    for episode in range(EPISODES):
        seed = stream_seed(config, ALIGNMENT, episode)
        x = play(env, agent.act, seed, _background(env.videos, config, episode, 0))
        y = replay(env, x["actions"], seed, _background(env.videos, config, episode, 1))
        first, second = (stack_observations(side["frames"][:-1], config.protocol.frame_stack) for side in (x, y))
        found.append(found_share(agent.represent(first), agent.represent(second)))
        difference.append(np.abs(agent.act_all(first) - agent.act_all(second)).mean())
    env.close()
    return {"found_percent": 100 * float(np.mean(found)), "action_difference": float(np.mean(difference))}


def _background(videos: Any, config: DistractingConfig, episode: int, side: int) -> dict[str, int] | None:
    """The two sides of an episode have different videos."""
    if videos is None:
        return None
    seed = stream_seed(config, ALIGNMENT, episode, 1 + side)
    return {"video": (2 * episode + side) % len(videos), "background_seed": seed}


def found_share(x: NDArray[np.float32], y: NDArray[np.float32], near: int = NEAR) -> float:
    """How often the row of y [T, k] with the largest cosine to a row of x [T, k] is at nearly the same place."""
    x, y = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (x, y))
    nearest = (x @ y.T).argmax(axis=1)
    return float((np.abs(nearest - np.arange(len(x))) <= near).mean())
