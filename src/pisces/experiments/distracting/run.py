"""Training runs of Distracting Control."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.checkpoint import tensors_below
from pisces.agents.drq.replay import Replay
from pisces.experiments.distracting.alignment import alignment
from pisces.experiments.distracting.config import EPISODE_STEPS, DistractingConfig
from pisces.experiments.distracting.data import (
    DRAW,
    EPISODE,
    TEST,
    TRAIN,
    PairStore,
    evaluate,
    make_agent,
    make_env,
    pair_path,
    stream_seed,
    write_pairs,
    write_pictures,
)
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import PAIRS_UNPACKED, REPLAY, RunFolder

CHECKPOINT_SECONDS = 120.0
PAIRS = "pairs"
ON_POLICY_BATCHES = 50
"""A pretrained agent collects this many batches of decisions before its first update."""
BEST = "best."
"""Prefix of the best policy so far in a checkpoint."""


def run(config: DistractingConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
    """Trains the config's agent, or resumes its training; the pretraining run that it needs is finished."""
    torch.set_num_threads(config.threads)
    pretrained = None
    if config.needs_pretraining:
        pretrained = RunFolder.of(folder.root, config.pretraining()).with_agent
        if config.has_pairs:
            _record_pairs(config, pretrained, device)
    _Run(config, folder, device, listeners, pretrained).resume()


def _record_pairs(config: DistractingConfig, pretrained: RunFolder, device: str) -> None:
    """Records the pairs of episodes that are missing, with the policy of the pretraining run."""
    folder = pretrained.file(PAIRS)
    if all(pair_path(folder, number).exists() for number in range(config.protocol.pairs)):
        return
    first = config.pretraining()
    with pretrained.lock():
        env = make_env(first, "train")
        agent = make_agent(first, env, device)
        env.close()
        agent.restore_policy(_best_policy(pretrained))
        write_pairs(config, agent, folder)


def _best_policy(folder: RunFolder) -> dict[str, Tensor]:
    """The policy of a run that had the highest return on training videos during its evaluations."""
    return tensors_below(BEST, folder.read_checkpoint()[0])


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
        self.best: dict[str, Tensor] = {}
        self.best_return = -1.0
        written, digest = self._restore(pretrained)
        size, stack = config.protocol.frame_size, config.protocol.frame_stack
        capacity = config.settings.buffer_size
        self.replay = Replay(folder.file(REPLAY), capacity, size, stack, self.agent.action_size, written, digest)
        self.pairs = self._open_pairs(pretrained)
        self.started = self.saved = time.monotonic()

    def _restore(self, pretrained: RunFolder | None) -> tuple[int, str | None]:
        checkpoint = self.folder.load_checkpoint()
        numbers: dict[str, Any] = {}
        if checkpoint is not None:
            tensors, numbers = checkpoint
            with self.folder.checkpoint_errors():
                self.agent.restore(tensors, numbers)
            self.steps, self.decisions, self.episodes = (int(numbers[k]) for k in ("steps", "decisions", "episodes"))
            self.sums.update(numbers["sums"])
            self.seconds, self.best_return = float(numbers["seconds"]), float(numbers["best_return"])
            self.best = tensors_below(BEST, tensors)
        elif self.config.init == "pretrained" and pretrained is not None:
            self.agent.restore_policy(_best_policy(pretrained))
        self.folder.keep_metrics("step", self.steps)
        return int(numbers.get("written", 0)), numbers.get("replay")

    def _open_pairs(self, pretrained: RunFolder | None) -> PairStore | None:
        if not self.config.has_pairs or pretrained is None:
            return None
        protocol, scratch = self.config.protocol, self.folder.file(PAIRS_UNPACKED)
        return PairStore(pretrained.file(PAIRS), protocol.pairs, protocol.frame_stack, self.config.settings, scratch)

    def resume(self) -> None:
        total, rows = self.config.protocol.steps, self.folder.read_metrics()
        if rows and rows[-1]["step"] == self.steps:  # the process may have been killed before it was heard
            self._tell({}, rows[-1])
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
            scale = info["steps"] if config.settings.average_rewards else 1
            self.replay.add(action, float(reward) / scale, terminated, env.render())
            total, done = total + float(reward), terminated or truncated
            self.steps, self.decisions = self.steps + info["steps"], self.decisions + 1
            losses: dict[str, float] = {}
            while self.agent.updates < self._updates_due():
                losses = self._update()
            self._tell(losses)
        self._count("episode_return", total)
        self.episodes += 1

    def _choose(self, observation: NDArray[np.uint8]) -> NDArray[np.float32]:
        if self.config.init == "random" and self.decisions < self.config.settings.learning_starts:
            return self.agent.random_action(self.decisions)
        return self.agent.act(observation, self.agent.exploration_noise(self.decisions))

    def _updates_due(self) -> int:
        settings, repeat = self.config.settings, self.config.action_repeat
        start = settings.learning_starts
        if self.config.init == "pretrained":
            start = max(start, ON_POLICY_BATCHES * settings.batch_size)
        decisions = max(self.decisions - start, 0)
        return decisions * repeat // settings.steps_per_update if settings.steps_per_update else decisions

    def _update(self) -> dict[str, float]:
        rng = np.random.default_rng([self.config.seed, DRAW, self.agent.updates])
        settings = self.config.settings
        batch = self.replay.sample(settings.batch_size, rng, settings.return_steps, settings.discount)
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
        if row["train_return"] > self.best_return:
            self.best, self.best_return = self.agent.policy_state(), row["train_return"]
        return row

    def _save(self) -> None:
        tensors, numbers = self.agent.state()
        numbers |= {"steps": self.steps, "decisions": self.decisions, "episodes": self.episodes}
        numbers |= {"sums": dict(self.sums), "written": self.replay.flush(), "seconds": self._seconds()}
        numbers["replay"] = self.replay.digest()
        numbers["best_return"] = self.best_return
        best = {f"{BEST}{name}": value for name, value in self.best.items()}
        self.folder.save_checkpoint(tensors | best, numbers)
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
            "train_return": float(np.mean(train)),
            "test_return": float(np.mean(test)),
            "train_returns": train,
            "test_returns": test,
            "alignment": alignment(self.config, self.agent),
            "curve": self.folder.read_metrics(),
        }
        if self.pairs is not None:
            result["pair_return"] = float(np.mean(self.pairs.returns))
        self.folder.write_result(self.config, result)
        for env in self.envs.values():
            env.close()
