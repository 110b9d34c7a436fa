"""Distracting Control in ratios: what the background costs, where an update's time goes, what replay costs.

All on one thread, at the sizes of the `cpu` preset, so that a busy machine disturbs the ratios little. Times are the
lowest of several, of this process alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.replay import Replay
from pisces.envs.distracting.env import DistractingEnv
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.data import make_agent
from pisces.pairs import Pair

TASK = "cartpole-swingup"


def seconds(action: Callable[[], object], repeats: int) -> float:
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def step_seconds(variant: str, frame_size: int, steps: int) -> float:
    env = DistractingEnv(TASK, variant, frame_size=frame_size)
    env.reset(seed=0)
    rng = np.random.default_rng(0)

    def play() -> None:
        for _ in range(10):
            env.step(rng.uniform(-1, 1, 1).astype(np.float32))

    result = seconds(play, steps) / 10
    env.close()
    return result


def report_environment(frame_size: int, repeats: int) -> None:
    plain, background = (step_seconds(variant, frame_size, repeats) for variant in ("plain", "paper"))
    print(
        f"environment at {frame_size} x {frame_size}: {1 / plain:.0f} decisions/s plain, {1 / background:.0f} with "
        f"background; background costs {100 * (background / plain - 1):.0f} %"
    )


def fill(replay: Replay, episodes: int, size: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(episodes):
        frames = rng.integers(0, 256, (126, size, size, 3), dtype=np.uint8)
        replay.begin(frames[0])
        for frame in frames[1:]:
            replay.add(rng.uniform(-1, 1, 1).astype(np.float32), 0.5, False, frame)


def report_update(agent: DrQAgent, replay: Replay, repeats: int) -> None:
    rng, size = np.random.default_rng(0), agent.settings.batch_size
    batch = replay.sample(size, rng)
    images = rng.integers(0, 256, (2, 125, *batch.observations.shape[1:]), dtype=np.uint8)
    pair = Pair(*torch.from_numpy(images), torch.from_numpy(rng.random((125, 125))))
    sample = seconds(lambda: replay.sample(size, rng), repeats)
    critic = seconds(lambda: agent._update_critic(batch, rng), repeats)
    targets = seconds(lambda: agent.target_values(batch, rng), repeats)
    actor = seconds(lambda: agent._update_actor(batch, rng), repeats) / agent.settings.actor_frequency
    similarity = seconds(lambda: agent._update_auxiliary(pair), repeats) / agent.settings.auxiliary_frequency
    whole = sample + critic + actor
    print(f"update of DrQ, batch {size}, one thread: {1 / whole:.1f} updates/s, of which")
    for name, part in (("targets", targets), ("critic", critic - targets), ("actor", actor), ("sampling", sample)):
        print(f"  {name}: {100 * part / whole:.0f} %")
    print(f"sampling against the rest of the update: {sample / (critic + actor):.3f}")
    print(f"update with the policy similarity loss: {(whole + similarity) / whole:.2f} updates of DrQ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    for frame_size in (48, 84):
        report_environment(frame_size, 2 * repeats)
    config = DistractingConfig.make("drq+pse", "cpu", task=TASK)
    env = DistractingEnv(TASK, frame_size=config.protocol.frame_size)
    agent = make_agent(config, env)
    with tempfile.TemporaryDirectory() as folder:
        paper, capacity = Path(folder) / "paper", 100_000
        Replay(paper, capacity, 84, 3, 1)
        size = sum(file.stat().st_size for file in paper.iterdir()) / capacity
        share = 2 * 9 * 84 * 84 / size
        print(
            f"replay at the paper's size: {size:.0f} bytes per transition, "
            f"{share:.1f} times less than two stacked observations"
        )
        replay = Replay(Path(folder) / "cpu", 10_000, config.protocol.frame_size, 3, 1)
        fill(replay, 20, config.protocol.frame_size)
        report_update(agent, replay, repeats)
    env.close()


if __name__ == "__main__":
    main()
