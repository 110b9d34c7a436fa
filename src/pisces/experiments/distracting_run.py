"""Runs of Distracting Control: pretrain, pairs, train; each goes on where an earlier call stopped."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from pisces.agents.replay import Replay
from pisces.errors import UserError, unknown_name
from pisces.experiments.distracting import EXPERIMENT, DistractingConfig, Stage, pretraining_config
from pisces.experiments.distracting_alignment import alignment
from pisces.experiments.distracting_data import (
    DRAW,
    EPISODE,
    TEST,
    TRAIN,
    PairStore,
    evaluate,
    make_agent,
    make_env,
    stream_seed,
    write_pairs,
    write_pictures,
)
from pisces.experiments.progress import Listener, Progress
from pisces.experiments.store import RunFolder

CHECKPOINT_SECONDS = 120.0
PAIRS, PAIRS_UNPACKED, REPLAY = "pairs", "pairs.u8", "replay"
EPISODE_STEPS = 1000
ON_POLICY_BATCHES = 50
"""A pretrained agent collects this many batches of environment steps before its first update."""


def run(
    config: DistractingConfig,
    out: str | Path,
    device: str = "cpu",
    listeners: Sequence[Listener] = (),
    stage: Stage = "all",
) -> RunFolder:
    """Runs a config, or goes on with it; the runs that it builds on come first.

    Args:
        config: what to run.
        out: root of the run folders.
        device: where to compute.
        listeners: called after every decision.
        stage: "all", or one of "pretrain", "pairs" and "train", of which the last needs the others done.

    Returns:
        The folder of the last run.
    """
    if stage not in get_args(Stage):
        raise unknown_name("stage", stage, get_args(Stage))
    first = pretraining_config(config)
    if stage == "pretrain":
        return _train(first, out, device, listeners, None)
    if not config.needs_pretraining and stage != "pairs":
        return _train(config, out, device, listeners, None)
    pretrained = _train(first, out, device, listeners, None) if stage == "all" else _finished(first, out)
    if config.method == "drq+pse" or stage == "pairs":
        _collect(config, first, pretrained, device, stage)
    return pretrained if stage == "pairs" else _train(config, out, device, listeners, pretrained)


def _finished(config: DistractingConfig, out: str | Path) -> RunFolder:
    folder = RunFolder.open(out, EXPERIMENT, config.method, config)
    if not folder.finished:
        raise UserError(f"expected a finished pretraining run in {str(folder.path)!r}, got none; run --stage pretrain")
    return folder


def _collect(
    config: DistractingConfig, first: DistractingConfig, pretrained: RunFolder, device: str, stage: Stage
) -> None:
    """Writes the pairs of episodes, unless they are there."""
    last = pretrained.file(PAIRS) / f"{config.protocol.pairs - 1:04d}.npz"
    if last.exists() or stage == "train":
        return
    torch.set_num_threads(config.threads)
    with pretrained.lock():
        env = make_env(first, "train")
        agent = make_agent(first, env, device)
        env.close()
        agent.restore_policy(_checkpoint(pretrained)[0])
        write_pairs(config, agent, pretrained.file(PAIRS))


def _checkpoint(folder: RunFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    checkpoint = folder.load_checkpoint()
    if checkpoint is None:
        raise UserError(f"expected a checkpoint in {str(folder.path)!r}, got none; train the run first")
    return checkpoint


def _train(
    config: DistractingConfig,
    out: str | Path,
    device: str,
    listeners: Sequence[Listener],
    pretrained: RunFolder | None,
) -> RunFolder:
    folder = RunFolder.open(out, EXPERIMENT, config.method, config)

    def train() -> None:
        torch.set_num_threads(config.threads)
        _Run(config, folder, device, listeners, pretrained).go_on()

    folder.finish_by(train)
    return folder


class _Run:
    """The state of a run between its episodes."""

    def __init__(
        self,
        config: DistractingConfig,
        folder: RunFolder,
        device: str,
        listeners: Sequence[Listener],
        pretrained: RunFolder | None,
    ) -> None:
        self.config, self.folder, self.listeners = config, folder, listeners
        self.envs = {"train": make_env(config, "train"), "test": make_env(config, "test")}
        self.agent = make_agent(config, self.envs["train"], device)
        self.steps = self.decisions = self.episodes = 0
        self.seconds = 0.0
        self.sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        written = self._restore(pretrained)
        size, stack = config.protocol.frame_size, config.protocol.frame_stack
        capacity = config.settings.capacity
        self.replay = Replay(folder.file(REPLAY), capacity, size, stack, self.agent.action_size, written)
        self.pairs = self._open_pairs(pretrained)
        self.started = self.saved = time.monotonic()

    def _restore(self, pretrained: RunFolder | None) -> int:
        checkpoint = self.folder.load_checkpoint()
        numbers: dict[str, Any] = {}
        if checkpoint is not None:
            tensors, numbers = checkpoint
            self.agent.restore(tensors, numbers)
            self.steps, self.decisions, self.episodes = (int(numbers[k]) for k in ("steps", "decisions", "episodes"))
            self.sums.update(numbers["sums"])
            self.seconds = float(numbers["seconds"])
        elif self.config.init == "pretrained" and pretrained is not None:
            self.agent.restore_policy(_checkpoint(pretrained)[0])
        self.folder.keep_metrics([row for row in self.folder.read_metrics() if row["step"] <= self.steps])
        return int(numbers.get("written", 0))

    def _open_pairs(self, pretrained: RunFolder | None) -> PairStore | None:
        if self.config.method != "drq+pse" or pretrained is None:
            return None
        protocol, discount = self.config.protocol, self.config.settings.metric_discount
        scratch = self.folder.file(PAIRS_UNPACKED)
        return PairStore(pretrained.file(PAIRS), protocol.pairs, protocol.frame_stack, discount, scratch)

    def go_on(self) -> None:
        total = self.config.protocol.steps
        while self.steps < total:
            self._episode()
            evaluation = self._evaluate() if self._evaluation_due() else None
            crowded = not self.replay.safe(EPISODE_STEPS // self.config.action_repeat + 1)
            if evaluation is not None or crowded or time.monotonic() - self.saved > CHECKPOINT_SECONDS:
                self._save()
            self._tell({}, evaluation)
        self._finish()

    def _episode(self) -> None:
        env, config = self.envs["train"], self.config
        observation, _ = env.reset(seed=stream_seed(config, EPISODE, self.episodes))
        self.replay.begin(env.render())
        total, done = 0.0, False
        while not done:
            action = self._choose(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            self.replay.add(action, float(reward), terminated, env.render())
            total, done = total + float(reward), terminated or truncated
            self.steps, self.decisions = self.steps + info["steps"], self.decisions + 1
            losses: dict[str, float] = {}
            while self.agent.updates < self._updates_due():
                losses = self._update()
            self._tell(losses)
        self._count("episode_return", total)
        self.episodes += 1

    def _choose(self, observation: NDArray[np.uint8]) -> NDArray[np.float32]:
        if self.config.init == "random" and self.decisions < self.config.settings.seed_steps:
            return self.agent.random_action(self.decisions)
        return self.agent.act(observation, self.agent.exploration_noise(self.decisions))

    def _updates_due(self) -> int:
        settings, repeat = self.config.settings, self.config.action_repeat
        start = settings.seed_steps
        if self.config.init == "pretrained":
            start = max(start, ON_POLICY_BATCHES * settings.batch_size // repeat)
        decisions = max(self.decisions - start, 0)
        return decisions * repeat // settings.steps_per_update if settings.steps_per_update else decisions

    def _update(self) -> dict[str, float]:
        rng = np.random.default_rng([self.config.seed, DRAW, self.agent.updates])
        settings = self.config.settings
        batch = self.replay.sample(settings.batch_size, rng, settings.return_steps, settings.discount)
        # Unpacking a pair takes as long as a tenth of an update.
        wanted = self.pairs if self.agent.auxiliary_due else None
        losses = self.agent.update(batch, None if wanted is None else wanted.draw(rng))
        for name, value in losses.items():
            self._count(f"{name}_loss" if name != "alpha" else name, value)
        return losses

    def _count(self, name: str, value: float) -> None:
        entry = self.sums[name]
        self.sums[name] = [entry[0] + value, entry[1] + 1]

    def _tell(self, losses: dict[str, float], evaluation: dict[str, Any] | None = None) -> None:
        progress = Progress(self.steps, self.config.protocol.steps, losses, evaluation)
        for listener in self.listeners:
            listener(progress)

    def _evaluation_due(self) -> bool:
        protocol = self.config.protocol
        done = len(self.folder.read_metrics())
        return self.steps * protocol.evaluations >= (done + 1) * protocol.steps or self.steps >= protocol.steps

    def _evaluate(self) -> dict[str, Any]:
        protocol = self.config.protocol
        row: dict[str, Any] = {"step": self.steps, "updates": self.agent.updates}
        row |= {name: total / count for name, (total, count) in sorted(self.sums.items())}
        self.sums.clear()
        for videos, stream, count in (
            ("train", TRAIN, protocol.train_episodes),
            ("test", TEST, protocol.evaluation_episodes),
        ):
            returns = evaluate(self.config, self.envs[videos], self.agent, count, stream)
            row[f"{videos}_return"] = float(np.mean(returns))
        self.folder.append_metrics(row)
        return row

    def _save(self) -> None:
        tensors, numbers = self.agent.state()
        numbers |= {"steps": self.steps, "decisions": self.decisions, "episodes": self.episodes}
        numbers |= {"sums": dict(self.sums), "written": self.replay.flush(), "seconds": self._seconds()}
        self.folder.save_checkpoint(tensors, numbers)
        self.saved = time.monotonic()

    def _seconds(self) -> float:
        return self.seconds + time.monotonic() - self.started

    def _finish(self) -> None:
        protocol = self.config.protocol
        train = evaluate(self.config, self.envs["train"], self.agent, protocol.train_episodes, TRAIN)
        test = evaluate(self.config, self.envs["test"], self.agent, protocol.final_episodes, TEST)
        write_pictures(self.config, self.agent, self.folder.path)
        self.folder.write_info({"seconds": round(self._seconds(), 1), "device": str(self.agent.device)})
        result = {
            "config": self.config.as_dict(),
            "train_return": float(np.mean(train)),
            "test_return": float(np.mean(test)),
            "train_returns": train,
            "test_returns": test,
            "alignment": alignment(self.config, self.agent),
            "curve": self.folder.read_metrics(),
        }
        if self.pairs is not None:
            result["pair_return"] = float(np.mean(self.pairs.returns))
        self.folder.write_result(result)
        for env in self.envs.values():
            env.close()
        # Neither is needed any more, and both are large.
        shutil.rmtree(self.folder.file(REPLAY))
        self.folder.file(PAIRS_UNPACKED).unlink(missing_ok=True)
