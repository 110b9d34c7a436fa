"""Commands that show something: demo, metric, report, evaluate, doctor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from pisces.cli.terminal import console, errors, note_compilation
from pisces.errors import UserError


def demo(out: Path = Path("demo"), seed: int = 0, seeds: int | None = None, preset: str = "quick") -> None:
    """Train agents without and with policy similarity embeddings and write a page that compares them.

    Args:
        out: folder of the runs and of report.html.
        seed: first seed.
        seeds: runs per method; without it, as many as the cores train at once, at most 5.
        preset: quick (minutes) or smoke (seconds).
    """
    from pisces.cli.curves import CurveDisplay
    from pisces.experiments.jumping.demo import (
        METHODS,
        default_seeds,
        demo_configs,
        demo_note,
        run_demo,
        solved_percent,
    )
    from pisces.experiments.jumping.experiment import Jumping
    from pisces.reports.report import write_report

    count = default_seeds() if seeds is None else seeds
    configs = demo_configs(seed, count, preset)
    note_compilation()
    names = [Jumping.method_names[method] for method in METHODS]
    groups = [METHODS.index(config.method) for config in configs]
    with CurveDisplay(names, groups, solved_percent, console) as display:
        run_demo(out / "runs", configs, display.update)
    written = write_report([out / "runs"], out, {Jumping.name: Jumping()}, "pca", note=demo_note(count))
    console.print(f"report: {written.page}", soft_wrap=True)


def metric(
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional],
    discount: float = 0.99,
    metric: str = "psm",
    cost: str = "auto",
    last: str | None = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
    ties: str = "first",
    out: Path = Path("metric"),
) -> None:
    """Measure the distances between the states of two trajectories or MDPs, or compare two agents by their episodes.

    Args:
        paths: two trajectories (npz, written by Trajectory.save), two MDPs (npz, written by FiniteMDP.save; the same
            file twice gives the distances within it), or the episodes of two agents: two folders of trajectories, or
            the files of two folders, e.g. a/*.npz b/*.npz.
        discount: discount of the metric, in [0, 1).
        metric: for MDPs: psm, pi-bisimulation, bisimulation or mico; policies are the optimal ones.
        cost: for trajectories: total-variation, l1, reward (pi-bisimulation), or auto for the policy similarity metric.
        last: for trajectories: self-loop or stop, what follows the last pair of states. Without it, terminated
            trajectories stay in their last states and the sum stops at the end of truncated ones; for agents, stop.
        threshold: for agents: distance above which a state has no match, 0.5 without it.
        tolerance: for MDPs: certified error at which to stop, 1e-6 times the largest cost without it.
        relative_tolerance: for MDPs: the same relative to the largest distance.
        ties: for MDPs: first or uniform, what the optimal policies do in states with several optimal actions.
        out: folder for metric.html (a page to explore), distance.npz, nearest.csv and heat_map.png; for agents,
            behavior.html and states.csv.
    """
    from pisces.cli.behavior_files import agent_files
    from pisces.metrics.setting import Accuracy

    note_compilation()
    accuracy = Accuracy(tolerance, relative_tolerance)
    files = agent_files(paths)
    if files is None:
        if threshold is not None:
            raise UserError("--threshold is for the episodes of two agents, got two files")
        _show_distances(paths, (discount, metric, cost, last, accuracy, ties), out)
    else:
        if (metric, ties) != ("psm", "first") or accuracy != Accuracy(None, None):
            raise UserError("expected no --metric, --tolerance and --ties for episodes of agents, which are for MDPs")
        _show_agents(files, (discount, cost, last, 0.5 if threshold is None else threshold), out)


def _show_distances(paths: tuple[Path, ...], options: tuple[Any, ...], out: Path) -> None:
    from pisces.cli.metric_files import compare_files

    x, y = paths
    report = compare_files(x, y, *options)
    written = report.write(out, x.stem, y.stem)
    table = Table("state of x", "nearest of y", "distance", title=f"{report.name}, discount {options[0]}")
    for i in range(min(len(report.nearest), 10)):
        table.add_row(str(i), str(report.nearest[i]), f"{report.distance[i, report.nearest[i]]:.6g}")
    console.print(table)
    size = f"{report.distance.shape[0]} x {report.distance.shape[1]} distances"
    bound = f", exact to {report.error_bound:.1e}" if report.error_bound else ""
    console.print(f"{size}{bound}: {', '.join(map(str, written))}", soft_wrap=True)
    for note in report.notes:
        console.print(note, soft_wrap=True)


def _show_agents(files: tuple[list[Path], list[Path]], options: tuple[Any, ...], out: Path) -> None:
    from pisces.cli.behavior_files import compare_agents, write_comparison

    found = compare_agents(files, *options)
    written = write_comparison(found, files, out)
    console.print(found.text(), soft_wrap=True, markup=False)
    console.print(f"page and states: {', '.join(map(str, written))}", soft_wrap=True, markup=False)


def report(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    out: Path = Path("report"),
    projection: str = "umap",
    mixed_versions: bool = False,
) -> None:
    """Write tables (ours vs. paper), figures, and a page to explore the runs.

    Args:
        runs: folders with run folders anywhere below them.
        out: folder of report.html, tables/ and figures/.
        projection: umap or pca for the embeddings of runs with checkpoints, none to leave them out.
        mixed_versions: accept runs of several versions of pisces in one report.
    """
    from pisces.cli.displays import StageDisplay
    from pisces.experiments.registry import all_experiments
    from pisces.reports.report import write_report

    with StageDisplay(console) as display:
        written = write_report(runs, out, all_experiments(), projection, mixed_versions, report=display.update)
    for note in written.notes:
        errors.print(f"pisces: {note}")
    console.print(f"report: {written.page}, and {len(written.files)} tables and figures beside it", soft_wrap=True)


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    tasks: tuple[str, ...] = (),
    episodes: int | None = None,
    draws: int | None = None,
    out: Path | None = None,
) -> None:
    """Evaluate a trained run on any tasks.

    Args:
        run: a run folder with its checkpoint.
        tasks: for jumping: obstacle,floor or obstacle,floor,color, e.g. 25,10 45,20,red; without it, all tasks.
        episodes: for distracting: episodes on training and on unseen videos each; for lqr: unseen environments.
        draws: for jumping with RandConv: number of evaluations of all tasks, each with its own random kernels.
        out: folder for evaluation.json.
    """
    from pisces.experiments.registry import evaluate_run
    from pisces.files import write_atomically

    if out is not None and out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {str(out)!r} is a file")
    found = evaluate_run(run, tasks=tasks or None, episodes=episodes, draws=draws)
    table = Table(*found.header, title=str(run), title_justify="left")
    for row in found.rows:
        table.add_row(*row)
    console.print(table)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / "evaluation.json"
        write_atomically(path, json.dumps(found.values, indent=1, sort_keys=True, allow_nan=False) + "\n")
        console.print(f"numbers: {path}", soft_wrap=True)


def doctor(full: bool = False) -> None:
    """Check the installation and say how to fix problems.

    Args:
        full: also import torch, compute a metric and draw a video, which takes seconds.
    """
    from pisces.cli.installation import examine

    if full:
        note_compilation()
    findings = examine(full)
    table = Table("", "what", "detail", box=None)
    for finding in findings:
        table.add_row(finding.state, finding.name, finding.detail)
    console.print(table)
    if any(finding.state == "broken" for finding in findings):
        raise SystemExit(1)
