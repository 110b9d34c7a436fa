"""Cloning runs on MiniGrid; they take seconds, so an interrupted run starts again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from pisces.agents.cloning.agent import CloningAgent
from pisces.experiments.minigrid.config import EVALUATIONS, MiniGridConfig
from pisces.experiments.minigrid.data import cloning_data
from pisces.experiments.minigrid.evaluation import final_results, solved_shares
from pisces.experiments.minigrid.judge import judge_features
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import RunFolder


def run(config: MiniGridConfig, folder: RunFolder, listeners: Sequence[Listener]) -> None:
    """Trains the config's agent and writes its checkpoint and the result."""
    torch.set_num_threads(config.threads)
    started = time.process_time()
    agent = CloningAgent(cloning_data(config), config.cloning, config.seed)
    rows: list[dict[str, Any]] = []
    while agent.iteration < config.cloning.steps:
        losses = asdict(agent.train_iteration())
        evaluation = None
        if agent.iteration * EVALUATIONS >= config.cloning.steps * (len(rows) + 1):
            evaluation = {"iteration": agent.iteration, **solved_shares(config, agent.act)}
            rows.append(evaluation)
        for listener in listeners:
            listener(Progress(agent.iteration, config.cloning.steps, losses, evaluation))
    folder.save_checkpoint(agent.weights(), {"iteration": agent.iteration})
    folder.write_info({"processor_seconds": round(time.process_time() - started, 1), "device": "cpu"})
    figures = {**final_results(config, agent.act), **judge_features(config, agent.represent)}
    folder.write_result(config, {**figures, "curve": rows})
