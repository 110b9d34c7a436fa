"""Training runs of the jumping task."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from pisces.agents.imitation.agent import ImitationAgent, Losses
from pisces.experiments.jumping.bisimulation_transfer import transfer_result
from pisces.experiments.jumping.config import JumpingConfig, TransferSettings, validation_solved
from pisces.experiments.jumping.data import TaskEvaluator, imitation_data
from pisces.experiments.jumping.results import solved_percentages, solved_tasks, task_results
from pisces.experiments.jumping.tasks import evaluated_tasks
from pisces.runs.interrupts import DeferredInterrupt
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import RunFolder

CHECKPOINT_SECONDS = 60.0
LOSS_NAMES = tuple(Losses.__dataclass_fields__)


def run(config: JumpingConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
    """Trains the config's agent, or resumes its training, and writes the result."""
    if isinstance(config.settings, TransferSettings):
        folder.write_info({})
        folder.write_result(config, transfer_result(config))
        return
    torch.set_num_threads(config.threads)
    agent = ImitationAgent(imitation_data(config), config.settings, config.seed, device)
    _Run(config, folder, agent, listeners).resume()


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
        if checkpoint is not None:
            tensors, numbers = checkpoint
            with self.folder.checkpoint_errors():
                self.agent.restore(tensors, numbers)
            self.sums = np.array(numbers["sums"])
            self.seconds = float(numbers["seconds"])
        self.folder.keep_metrics("iteration", self.agent.iteration)

    def resume(self) -> None:
        with DeferredInterrupt() as interrupt:
            self._conclude()  # an evaluation that an interrupt may have left undone
            self._repeat_evaluation()
            while self.agent.iteration < self.agent.total_iterations and not interrupt.requested:
                self._train_once()
            if interrupt.requested:
                # Between iterations only: training cannot resume from the middle of one.
                self._save()
            else:
                self._finish()
        if interrupt.requested:
            raise KeyboardInterrupt

    def _repeat_evaluation(self) -> None:
        """Reports the evaluation of a resumed checkpoint: its process may have been killed before it was heard."""
        agent, rows = self.agent, self.folder.read_metrics()
        if rows and rows[-1]["iteration"] == agent.iteration:
            for listener in self.listeners:
                listener(Progress(agent.iteration, agent.total_iterations, {}, rows[-1]))

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
        """Evaluates after an iteration if an evaluation is due, and ends a restart at its last iteration."""
        evaluation = self._evaluate() if self._evaluation_due() else None
        if self.agent.start_ends:
            self.agent.keep_or_drop(validation_solved(self.folder.read_metrics()[-1], self.config.colors))
        return evaluation

    def _evaluation_due(self) -> bool:
        settings, length = self.config.imitation, self.agent.iterations_per_start
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
        actions = self.evaluator.greedy_actions(self.agent)
        solved = solved_tasks(self.evaluator.tasks, actions)
        row = {"iteration": self.agent.iteration, **losses, **solved_percentages(self.config, solved)}
        self.folder.append_metrics(row)
        self.sums[:] = 0
        return row

    def _save(self) -> None:
        tensors, numbers = self.agent.state()
        seconds = self.seconds + time.monotonic() - self.started
        self.folder.save_checkpoint(tensors, {**numbers, "sums": self.sums.tolist(), "seconds": seconds})
        self.saved = time.monotonic()

    def _finish(self) -> None:
        everything = TaskEvaluator(self.evaluator.tasks, self.agent.device, beyond_jump=True)
        actions = everything.greedy_actions(self.agent)
        seconds = self.seconds + time.monotonic() - self.started
        self.folder.write_info({"seconds": round(seconds, 1), "device": str(self.agent.device)})
        result = {**task_results(self.config, everything.tasks, actions), "curve": self.folder.read_metrics()}
        self.folder.write_result(self.config, result)
