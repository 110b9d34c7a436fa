"""Runs of the LQR study; `python -m pisces.experiments.lqr_run --help` trains whole tables, many seeds at once.

Every finished batch of seeds is written down at once, so a stop at any moment loses at most the batches under way, and
the same command goes on with the seeds that are missing.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from pisces.errors import UserError
from pisces.experiments.lists import parse_seeds
from pisces.experiments.lqr import EXPERIMENT, METHODS, SIZES, LQRConfig, make_config
from pisces.experiments.store import RunFolder
from pisces.experiments.worker import end_with_parent

BATCH_BYTES = 4e8
"""Memory that one batch may take; two workers with a batch each stay below 4 GB with what they load."""
MOST_SEEDS = 25
"""Larger batches gain nothing: their weights leave the processor's cache, and work is shared out less evenly."""

Rows = list[dict[str, Any]]
Report = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Job:
    """Seeds of one config that are trained together."""

    config: LQRConfig
    """The config that they belong to."""
    seeds: tuple[int, ...]
    """Which of its seeds."""


def batch_size(config: LQRConfig) -> int:
    """How many seeds are trained together within the memory for one batch."""
    observed, settings = config.distractors + 20, config.settings
    width = settings.width if settings.policy == "two-layer" else 20 * config.environments
    per_seed = observed * (5 * width + 40 * config.environments) * (4 if settings.precision == "float32" else 8)
    return int(max(1, min(MOST_SEEDS, BATCH_BYTES // per_seed)))


def missing_jobs(config: LQRConfig, folder: RunFolder) -> Iterator[Job]:
    """The batches that a run still needs; asked for by the process that has the run's lock."""
    rows = folder.read_metrics()
    folder.keep_metrics(rows)  # a line that a stop cut off would spoil the next one
    have = {row["seed"] for row in rows}
    missing = [seed for seed in config.seeds if seed not in have]
    size = batch_size(config)
    for start in range(0, len(missing), size):
        yield Job(config, tuple(missing[start : start + size]))


def train_job(job: Job, report: Report = lambda step, left, cost: None, checkpoint: RunFolder | None = None) -> Rows:
    """Trains the seeds of a job and judges their policies; torch loads here."""
    from pisces.experiments.lqr_data import judge, train_seeds

    trained = train_seeds(job.config, job.seeds, report)
    if checkpoint is not None:
        layers = {f"layer_{index}": layer for index, layer in enumerate(trained[0].layers)}
        checkpoint.save_checkpoint(layers, {"seed": job.seeds[0], "steps": trained[0].steps})
    return [judge(job.config, seed, own) for seed, own in zip(job.seeds, trained, strict=True)]


def run(
    config: LQRConfig, out: str | Path, threads: int = 1, report: Report = lambda step, left, cost: None
) -> RunFolder:
    """Trains the config's seeds in this process, or those that are missing, and writes the run folder.

    Args:
        config: what to run; a single seed's policy is kept as a checkpoint.
        out: root of the run folders.
        threads: threads of the computation.
        report: called after every step with its number, the seeds still training and their mean training cost.

    Returns:
        The finished run's folder. A run that is finished already is not run again.
    """
    if threads < 1:
        raise UserError(f"expected threads of at least 1, got {threads}")
    folder = RunFolder.open(out, EXPERIMENT, config.method, config)

    def train() -> None:
        import torch  # loads late, so that finished cells are skipped at once

        torch.set_num_threads(threads)
        started = time.monotonic()
        for job in missing_jobs(config, folder):
            record(folder, train_job(job, report, folder if len(config.seeds) == 1 else None))
        finish(folder, config, time.monotonic() - started)

    folder.finish_by(train)
    return folder


def record(folder: RunFolder, rows: Rows) -> None:
    """Writes down finished seeds."""
    for row in rows:
        folder.append_metrics(row)


def finish(folder: RunFolder, config: LQRConfig, seconds: float) -> None:
    """Writes the result, seeds in the config's order; a single seed's values also stand at the top."""
    by_seed = {row["seed"]: row for row in folder.read_metrics()}
    rows = [by_seed[seed] for seed in config.seeds]
    top = {name: rows[0][name] for name in ("error", "cost", "oracle_cost")} if len(rows) == 1 else {}
    folder.write_info({"seconds": round(seconds, 1)})
    folder.write_result({"config": config.as_dict(), **top, "runs": rows})


def run_cells(
    configs: Sequence[LQRConfig],
    out: str | Path,
    workers: int = 2,
    report: Callable[[LQRConfig, int, bool], None] = lambda config, seeds, finished: None,
) -> list[RunFolder]:
    """Trains several configs, batches side by side in processes of one thread each.

    Args:
        configs: what to run; largest first keeps all workers busy to the end.
        out: root of the run folders.
        workers: processes.
        report: called after each batch with its config, the number of seeds done, and whether the config is finished.

    Raises:
        LockedError: another process is busy with one of them.
    """
    if workers < 1:
        raise UserError(f"expected workers of at least 1, got {workers}")
    folders = [RunFolder.open(out, EXPERIMENT, config.method, config) for config in configs]
    with ExitStack() as locks:
        for folder in dict.fromkeys(folders):
            if not folder.finished:
                locks.enter_context(folder.lock())
        _run_missing(list(zip(configs, folders, strict=True)), workers, report)
    return folders


def _run_missing(
    cells: Sequence[tuple[LQRConfig, RunFolder]], workers: int, report: Callable[[LQRConfig, int, bool], None]
) -> None:
    started = time.monotonic()
    unfinished = [(config, folder) for config, folder in cells if not folder.finished]
    left = [list(missing_jobs(config, folder)) for config, folder in unfinished]

    def settle(index: int, rows: Rows) -> None:
        config, folder = unfinished[index]
        record(folder, rows)
        left[index].pop()
        if not left[index]:
            finish(folder, config, time.monotonic() - started)
        report(config, len(rows), not left[index])

    for (config, folder), jobs in zip(unfinished, left, strict=True):
        if not jobs:
            finish(folder, config, 0.0)
    _work_off([(index, job) for index, jobs in enumerate(left) for job in jobs], workers, settle)


def _work_off(jobs: Sequence[tuple[int, Job]], workers: int, settle: Callable[[int, Rows], None]) -> None:
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context, initializer=_start_worker)
    try:
        pending: dict[Future[Rows], int] = {pool.submit(train_job, job): index for index, job in jobs}
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                settle(pending.pop(future), future.result())
    except BrokenProcessPool as error:
        pool.shutdown(wait=False, cancel_futures=True)
        raise UserError(
            "expected workers that live, got one that was killed (too little memory?); the same command goes on"
        ) from error
    except BaseException:
        for process in list(getattr(pool, "_processes", {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _start_worker() -> None:
    import os

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    torch.set_num_threads(1)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()


def reproduce(
    methods: tuple[str, ...] = tuple(METHODS),
    distractors: tuple[int, ...] = SIZES,
    seeds: str = "0-99",
    preset: str = "paper",
    workers: int = 2,
    out: Path = Path("results"),
) -> None:
    """Train all seeds of every method and number of distractors; one result file per cell.

    Args:
        methods: overparametrized, ipo, l1, psm.
        distractors: numbers of distractors.
        seeds: e.g. 0-99.
        preset: paper or smoke.
        workers: processes, each with one thread.
        out: root of the run folders.
    """
    chosen = tuple(parse_seeds(seeds))
    sizes = sorted(distractors, reverse=True)
    cells = [make_config(method, size, chosen, preset) for size in sizes for method in methods]
    run_cells_with_display(list(dict.fromkeys(cells)), out, workers)


def run_cells_with_display(configs: Sequence[LQRConfig], out: Path, workers: int) -> None:
    """Runs cells with a bar over all their seeds and a line per finished cell."""
    if not configs:
        raise UserError("expected at least one method and number of distractors, got none")
    console = Console(highlight=False)
    started = time.monotonic()
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as bars:
        done = sum(_seeds_done(config, out) for config in configs)
        task = bars.add_task("seeds", total=sum(len(config.seeds) for config in configs), completed=done)

        def report(config: LQRConfig, count: int, finished: bool) -> None:
            bars.advance(task, count)
            if finished:
                minutes = (time.monotonic() - started) / 60
                name = f"{config.method}, {config.distractors} distractors" + (config.study and f", {config.study}")
                console.print(f"{name}: done after {minutes:.1f} min", soft_wrap=True)

        run_cells(configs, out, workers, report)


def _seeds_done(config: LQRConfig, out: Path) -> int:
    folder = RunFolder.open(out, EXPERIMENT, config.method, config)
    return len(config.seeds) if folder.finished else len(folder.read_metrics())


def guarded(command: Callable[[], object]) -> int:
    """Runs a command; returns its exit code, and says in one line what stopped it."""
    try:
        command()
    except UserError as error:
        print(f"pisces: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pisces: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `reproduce` from the command line; returns its exit code."""
    return guarded(lambda: tyro.cli(reproduce, prog="python -m pisces.experiments.lqr_run", args=arguments))


if __name__ == "__main__":
    sys.exit(main())
