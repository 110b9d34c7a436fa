"""Settings of the test run, and run folders without training."""

import json
import signal

import numpy as np
import pytest
from hypothesis import settings

# Compiled kernels make the first example slow; what is slow belongs in benchmarks/, not in deadlines.
settings.register_profile("pisces", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("pisces")

# A shell that starts the tests in the background has Ctrl-C ignored; they and what they start are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def made_up_result(config, share=0.7):
    """A result of the right form: the given share of unseen tasks is solved, the agent never jumps in the others."""
    from pisces.envs.jumping import optimal_actions
    from pisces.experiments.jumping.results import solved_percentages, task_results
    from pisces.experiments.jumping.tasks import evaluated_tasks, run_colors, run_split
    from pisces.runs.store import SCHEMA

    rng = np.random.default_rng([config.seed, len(config.method)])
    tasks = evaluated_tasks(config)
    splits = {color: run_split(config, color) for color in run_colors(config)}
    solved = {task: bool(task in splits[task.color].train or rng.random() < share) for task in tasks}
    actions = []
    for task in tasks:
        chosen = optimal_actions(task)[: task.steps_to_obstacle]
        wrong = np.ones_like(chosen) if task.color == "green" else np.zeros_like(chosen)
        actions.append(chosen if solved[task] else wrong)
    percentages = solved_percentages(config, solved)
    curve = [
        {"iteration": step, **{name: value * step / 8000 for name, value in percentages.items()}}
        for step in (4000, 8000)
    ]
    stored = {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict()}
    return {**stored, **task_results(config, tasks, actions), "curve": curve}


def random_checkpoint(folder, config):
    """Writes the checkpoint of an agent that has learned nothing."""
    import torch

    from pisces.agents.checkpoint import save_checkpoint
    from pisces.agents.imitation.networks import REPRESENTATION, JumpingNetwork
    from pisces.losses import ContrastiveMetricLoss

    torch.manual_seed(config.seed)
    tensors = {f"network.{name}": value for name, value in JumpingNetwork(2).state_dict().items()}
    if config.settings.auxiliary == "contrastive":
        loss = ContrastiveMetricLoss(REPRESENTATION, config.settings.embedding_size)
        tensors |= {f"loss.{name}": value for name, value in loss.state_dict().items()}
    save_checkpoint(folder / "checkpoint.safetensors", tensors, {"iteration": 0})


@pytest.fixture(scope="session")
def write_run():
    """A function that writes a finished run folder below a root and returns it."""
    from pisces.experiments.jumping.config import JumpingConfig
    from pisces.runs.store import RunFolder

    def write(
        root,
        method="randconv",
        seed=0,
        share=0.7,
        checkpoint=False,
        version="0.1.0",
        change=None,
        preset="paper",
        **arguments,
    ):
        config = JumpingConfig.make(method, preset, seed=seed, **arguments)
        folder = RunFolder.of(root, config).create(config).path
        result = made_up_result(config, share)
        if change is not None:
            change(result)
        (folder / "run.json").write_text(json.dumps({"pisces": version}))
        (folder / "result.json").write_text(json.dumps(result))
        if checkpoint:
            random_checkpoint(folder, config)
        return folder

    return write
