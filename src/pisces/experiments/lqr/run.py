"""Training runs of linear-quadratic control; every finished batch of seeds is recorded at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pisces.errors import UserError
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.lqr.data import evaluate_seed, train_seeds
from pisces.runs.progress import Listener, Progress
from pisces.runs.store import RunFolder

BATCH_BYTES = 4e8
"""Memory that one batch may take; two workers with a batch each stay below 4 GB with what they load."""
MOST_SEEDS = 25
"""Larger batches are no faster: their weights leave the CPU's cache."""


def run(config: LQRConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
    """Trains the seeds that the folder lacks and writes the result."""
    torch.set_num_threads(config.threads)
    started = time.monotonic()
    folder.keep_metrics("seed", max(config.seeds))  # drops a line that an interrupt cut off
    done = {row["seed"] for row in folder.read_metrics()}
    resumed = bool(done)
    for seeds in batches(config, [seed for seed in config.seeds if seed not in done]):
        _train_batch(config, seeds, folder, len(done), listeners)
        done |= set(seeds)
    rows = folder.read_metrics()
    if all(row["train_error"] is None for row in rows):
        raise UserError(
            f"the run {str(folder.path)!r} diverged: the closed loop is unstable in its training environments; "
            "choose other settings, e.g. a lower learning rate"
        )
    # The time of a resumed run is not known: seeds that were done before are recorded without theirs.
    folder.write_info({} if resumed else {"seconds": round(time.monotonic() - started, 1)})
    folder.write_result(config, result_values(config, rows))


def batches(config: LQRConfig, seeds: Sequence[int]) -> Iterator[Sequence[int]]:
    """Splits seeds into batches that fit the memory for one batch."""
    size = int(max(1, min(MOST_SEEDS, BATCH_BYTES // config.seed_bytes)))
    for start in range(0, len(seeds), size):
        yield seeds[start : start + size]


def _train_batch(
    config: LQRConfig, seeds: Sequence[int], folder: RunFolder, done: int, listeners: Sequence[Listener]
) -> None:
    steps = config.settings.max_steps

    def report(step: int, left: int, cost: float) -> None:
        share = max(step / steps, 1 - left / len(seeds))  # seeds end early, and a batch with its last seed
        progress = Progress(round(steps * (done + share * len(seeds))), steps * config.n_seeds, {"cost": cost})
        for listener in listeners:
            listener(progress)

    trained = train_seeds(config, seeds, report)
    if config.n_seeds == 1:
        layers = {f"layer_{index}": layer for index, layer in enumerate(trained[0].layers)}
        folder.save_checkpoint(layers, {"seed": config.seed, "steps": trained[0].steps})
    rows = [evaluate_seed(config, seed, own) for seed, own in zip(seeds, trained, strict=True)]
    for row in rows:
        folder.append_metrics(row)
    final = Progress(steps * (done + len(seeds)), steps * config.n_seeds, {}, rows[-1])
    for listener in listeners:
        listener(final)


def result_values(config: LQRConfig, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the entries of a result: all seeds in order; a single seed's measures also stand at the top."""
    by_seed = {row["seed"]: row for row in rows}
    runs = [by_seed[seed] for seed in config.seeds]
    names = ("error", "cost", "oracle_cost", "validation_error")
    return {**({name: runs[0][name] for name in names} if config.n_seeds == 1 else {}), "runs": runs}
