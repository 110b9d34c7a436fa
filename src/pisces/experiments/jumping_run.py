"""One run of the jumping task: train, evaluate, write the run folder; goes on where an earlier call stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pisces.agents.imitation import ImitationAgent, Losses
from pisces.envs.jumping import JumpingTask
from pisces.experiments.interrupts import Interrupts
from pisces.experiments.jumping import EXPERIMENT, JumpingConfig, validation_solved
from pisces.experiments.jumping_data import (
    TaskEvaluator,
    evaluated_tasks,
    imitation_data,
    is_solved,
    run_colors,
    run_split,
    split_percentages,
)
from pisces.experiments.progress import Listener, Progress
from pisces.experiments.store import RunFolder

CHECKPOINT_SECONDS = 60.0
LOSS_NAMES = tuple(Losses.__dataclass_fields__)


def run(
    config: JumpingConfig,
    out: str | Path,
    device: str = "cpu",
    listeners: Sequence[Listener] = (),
) -> RunFolder:
    """Trains the config's agent, or goes on with it, and writes its run folder.

    Args:
        config: what to run.
        out: root of the run folders.
        device: where to compute.
        listeners: called after every iteration.

    Returns:
        The finished run's folder. A run that is finished already is not run again.
    """
    folder = RunFolder.open(out, EXPERIMENT, config.method, config)

    def train() -> None:
        torch.set_num_threads(config.threads)
        agent = ImitationAgent(imitation_data(config), config.settings, config.seed, device)
        _Run(config, folder, agent, listeners).go_on()

    folder.finish_by(train)
    return folder


class _Run:
    """The state of a run between its iterations."""

    def __init__(
        self,
        config: JumpingConfig,
        folder: RunFolder,
        agent: ImitationAgent,
        listeners: Sequence[Listener],
    ) -> None:
        self.config, self.folder, self.agent, self.listeners = config, folder, agent, listeners
        self.evaluator = TaskEvaluator(evaluated_tasks(config), agent.device)
        self.sums = np.zeros(len(LOSS_NAMES))
        self.seconds = 0.0
        self._restore()
        self.started = time.monotonic()
        self.saved = self.started

    def _restore(self) -> None:
        checkpoint = self.folder.load_checkpoint()
        rows = self.folder.read_metrics()
        if checkpoint is not None:
            tensors, numbers = checkpoint
            self.agent.restore(tensors, numbers)
            self.sums = np.array(numbers["sums"])
            self.seconds = float(numbers["seconds"])
        self.folder.keep_metrics([row for row in rows if row["iteration"] <= self.agent.iteration])

    def go_on(self) -> None:
        with Interrupts() as interrupts:
            self._conclude()  # what a stop may have left undone
            while self.agent.iteration < self.agent.total_iterations and not interrupts.heard:
                self._train_once()
            if interrupts.heard:
                # Only here, between iterations: in the middle of one the agent is in no state to go on from.
                self._save()
            else:
                self._finish()
        if interrupts.heard:
            raise KeyboardInterrupt

    def _train_once(self) -> None:
        agent = self.agent
        losses = agent.train_iteration()
        self.sums += np.array([getattr(losses, name) for name in LOSS_NAMES])
        evaluation = self._conclude()
        if evaluation is not None or time.monotonic() - self.saved > CHECKPOINT_SECONDS:
            self._save()
        progress = Progress(agent.iteration, agent.total_iterations, asdict(losses), evaluation)
        for listener in self.listeners:
            listener(progress)

    def _conclude(self) -> dict[str, Any] | None:
        """Evaluates after an iteration if that is due and not done, and ends one of several starts."""
        evaluation = self._evaluate() if self._evaluation_due() else None
        if self.agent.start_ends:
            self.agent.keep_or_drop(validation_solved(self.folder.read_metrics()[-1], self.config.colors))
        return evaluation

    def _evaluation_due(self) -> bool:
        settings, length = self.config.settings, self.agent.iterations_per_start
        every = math.ceil(length / math.ceil(settings.evaluations / settings.restarts))
        place = self.agent.iteration % length
        if self.agent.iteration == 0 or (place and place % every):
            return False
        rows = self.folder.read_metrics()
        return not rows or rows[-1]["iteration"] < self.agent.iteration

    def _evaluate(self) -> dict[str, Any]:
        rows = self.folder.read_metrics()
        since = self.agent.iteration - (rows[-1]["iteration"] if rows else 0)
        losses = dict(zip((f"{name}_loss" for name in LOSS_NAMES), (self.sums / since).tolist(), strict=True))
        solved = self._solved(self.evaluator.greedy_actions(self.agent))
        row = {"iteration": self.agent.iteration, **losses, **self._percentages(solved)}
        self.folder.append_metrics(row)
        self.sums[:] = 0
        return row

    def _solved(self, actions: list[Any]) -> dict[JumpingTask, bool]:
        return {task: is_solved(task, chosen) for task, chosen in zip(self.evaluator.tasks, actions, strict=True)}

    def _percentages(self, solved: dict[JumpingTask, bool]) -> dict[str, float]:
        percentages: dict[str, float] = {}
        for color in run_colors(self.config):
            prefix = f"{color}_" if self.config.colors else ""
            percentages |= split_percentages(run_split(self.config, color), solved, prefix)
        return percentages

    def _save(self) -> None:
        tensors, numbers = self.agent.state()
        seconds = self.seconds + time.monotonic() - self.started
        self.folder.save_checkpoint(tensors, {**numbers, "sums": self.sums.tolist(), "seconds": seconds})
        self.saved = time.monotonic()

    def _finish(self) -> None:
        everything = TaskEvaluator(self.evaluator.tasks, self.agent.device, beyond_jump=True)
        actions = everything.greedy_actions(self.agent)
        solved = self._solved(actions)
        seconds = self.seconds + time.monotonic() - self.started
        self.folder.write_info({"seconds": round(seconds, 1), "device": str(self.agent.device)})
        self.folder.write_result(
            {
                "config": self.config.as_dict(),
                **self._percentages(solved),
                "tasks": [[task.obstacle_position, task.floor_height, task.color] for task in everything.tasks],
                "train_tasks": [asdict(task) for color in run_colors(self.config) for task in self._train(color)],
                "solved": "".join(str(int(solved[task])) for task in everything.tasks),
                "actions": ["".join(map(str, chosen)) for chosen in actions],
                "curve": self.folder.read_metrics(),
            }
        )

    def _train(self, color: Any) -> tuple[JumpingTask, ...]:
        return run_split(self.config, color).train
