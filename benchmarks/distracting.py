"""Distracting Control in ratios: what the background costs, where an update's time goes, what replay costs.

All on one thread, at the sizes of the `cpu` preset, so that a busy machine disturbs the ratios little. Times are the
lowest of several, of this process alone. ``--preset paper --device cuda`` estimates how long a run takes on a GPU.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.replay import Replay, TransitionBatch
from pisces.envs.distracting.env import DistractingEnv
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.data import make_agent
from pisces.pairs import Pair

TASK = "cartpole-swingup"


def seconds(action: Callable[[], object], repeats: int, clock: Callable[[], float] = time.process_time) -> float:
    action()
    times = []
    for _ in range(repeats):
        start = clock()
        action()
        times.append(clock() - start)
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


def convolution_seconds(agent: DrQAgent, batch: TransitionBatch, repeats: int) -> float:
    """The convolutions that no update can do without: of next observations, and of current ones with gradients."""
    frames = torch.from_numpy(batch.observations).permute(0, 3, 1, 2).float()
    images = frames.contiguous(memory_format=torch.channels_last)

    def forward() -> None:
        with torch.inference_mode():
            agent.convolutions(images)

    return seconds(forward, repeats) + seconds(lambda: agent.convolutions(images).sum().backward(), repeats)


def update_seconds(
    agent: DrQAgent, replay: Replay, repeats: int, clock: Callable[[], float] = time.process_time
) -> float:
    """One update with sampling, averaged over those with and without the actor's."""
    rng, settings = np.random.default_rng(0), agent.settings

    def update() -> None:
        for _ in range(4):
            agent.update(replay.sample(settings.batch_size, rng, settings.return_steps, settings.discount))

    return seconds(update, repeats, clock) / 4


def report_update(config: DistractingConfig, env: DistractingEnv, replay: Replay, repeats: int) -> None:
    """The update of the preset against its bare convolutions, and against the paper's way to do it."""
    drq = replace(config, method="drq", settings=replace(config.settings, auxiliary=False))
    published = {"views": 2, "target_convolutions": True, "reuse_features": False}
    batch = replay.sample(config.settings.batch_size, np.random.default_rng(0))
    for name, changes in (("as published", published), ("of the preset", {})):
        agent = make_agent(drq.override(changes), env)
        update = update_seconds(agent, replay, repeats)
        bare = convolution_seconds(agent, batch, repeats)
        print(f"update {name}: {1 / update:.1f} per second, {update / bare:.2f} times its bare convolutions")
    agent = make_agent(config, env)
    settings, images = config.settings, torch.from_numpy(batch.observations)
    anchors, candidates = (
        images.repeat(8, 1, 1, 1)[:count] for count in (settings.anchors, settings.candidates or 125)
    )
    pair = Pair(anchors, candidates, torch.rand(len(anchors), len(candidates), dtype=torch.float64))
    similarity = seconds(lambda: agent.auxiliary_loss(pair).backward(), repeats) / settings.auxiliary_frequency
    sample = seconds(lambda: replay.sample(settings.batch_size, np.random.default_rng(0)), repeats)
    print(
        f"the policy similarity loss adds {100 * similarity / update:.0f} %, sampling is {100 * sample / update:.0f} %"
    )


def report_run(preset: str, device: str, repeats: int) -> None:
    """How long a run of a preset takes, by the time of one update and one decision."""
    config = DistractingConfig.make("drq", preset, task=TASK)
    settings, protocol = config.settings, config.protocol
    env = DistractingEnv(TASK, frame_size=protocol.frame_size)
    agent = make_agent(config, env, device)
    with tempfile.TemporaryDirectory() as folder:
        replay = Replay(Path(folder), 2000, protocol.frame_size, 3, 1)
        fill(replay, 10, protocol.frame_size)
        # On a GPU the wall clock counts, and reading a loss waits for it.
        update = update_seconds(agent, replay, repeats, time.perf_counter if device != "cpu" else time.process_time)
    env.close()
    decision = step_seconds("paper", protocol.frame_size, repeats)
    decisions = protocol.steps / config.action_repeat
    updates = protocol.steps / settings.steps_per_update if settings.steps_per_update else decisions
    hours = (updates * update + decisions * decision) / 3600
    print(
        f"preset {preset} on {device}: {1 / update:.2f} updates and {1 / decision:.0f} decisions per second, "
        f"{hours:.1f} hours for a run of DrQ on {TASK} without its evaluations"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--preset", help="only estimate the time of a run of this preset")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    repeats = options.repeats
    torch.set_num_threads(1)
    if options.preset:
        report_run(options.preset, options.device, repeats)
        return
    for frame_size in (48, 84):
        report_environment(frame_size, 2 * repeats)
    config = DistractingConfig.make("drq+pse", "cpu", task=TASK)
    env = DistractingEnv(TASK, frame_size=config.protocol.frame_size)
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
        report_update(config, env, replay, repeats)
    env.close()


if __name__ == "__main__":
    main()
