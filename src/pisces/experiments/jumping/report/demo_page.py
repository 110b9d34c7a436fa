"""The demo's page: results of two runs, as figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pisces.envs.jumping import decode_frames, optimal_frames
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.report.task_figures import FIGURE_DISCOUNT, TASK_X, TASK_Y
from pisces.experiments.jumping.report.tiles import solved_grid
from pisces.files import write_atomically
from pisces.reports.figures import frames_strip, heat_map, learning_curves
from pisces.reports.page import html as page
from pisces.runs.store import RESULT, RUN_INFO, RunFolder

NAMES = ("without PSE", "with PSE")
SHOWN_STEPS = (0, 11, 31)
SMALL_GAIN = 5.0
"""Differences below this many percentage points are called small; single runs differ by about as much."""


def write_demo_page(folders: tuple[RunFolder, RunFolder], path: Path) -> None:
    """Writes the page of the demo's two runs, without and with PSE."""
    results = [folder.read_json(RESULT) for folder in folders]
    seconds = [folder.read_json(RUN_INFO)["seconds"] for folder in folders]
    body = [
        "<h1>Does behavioral similarity help an agent generalize?</h1>",
        page.paragraph(_verdict(results), "lead"),
        page.paragraph(_setting(results[1], seconds), "soft"),
        *_solved_section(results),
        *_curve_section(results),
        *_metric_section(),
        *_command_section(results),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.page("pisces: the demo", body))


def _verdict(results: list[dict[str, Any]]) -> str:
    without, with_pse = (result["test_solved_percent"] for result in results)
    unseen = len(results[0]["tasks"]) - len(results[0]["train_tasks"])
    gain = with_pse - without
    text = f"Of {unseen} unseen tasks, the agent solved {without:.1f} % without and {with_pse:.1f} % with "
    text += "policy similarity embeddings (PSE)"
    if gain < -SMALL_GAIN:
        return text + f": in this run they hurt, by {-gain:.1f} points."
    if gain < SMALL_GAIN:
        return text + f": a difference of {gain:.1f} points, too small to tell from chance in a single run."
    return text + f": {gain:.1f} points more."


def _setting(result: dict[str, Any], seconds: list[float]) -> str:
    config, iterations = result["config"], result["curve"][-1]["iteration"]
    return (
        f"Both agents saw the optimal episodes of the same {len(result['train_tasks'])} tasks ({config['grid']} grid, "
        f"seed {config['seed']}) for {iterations} iterations; they differ only in the auxiliary loss. Training took "
        f"{seconds[0]:.0f} s and {seconds[1]:.0f} s. One seed is an example, not evidence: the README's tables average "
        "over seeds. Both use the learning rate that the paper chose for PSE; RandConv alone does much better with its "
        "own (`randconv` in those tables), so the gap here is not the gap between the two methods at their best."
    )


def _solved_section(results: list[dict[str, Any]]) -> list[str]:
    captions = [
        f"{name}: {result['train_solved_percent']:.1f} % of training tasks, {result['test_solved_percent']:.1f} % of "
        "unseen tasks solved (beige); T marks training tasks"
        for name, result in zip(NAMES, results, strict=True)
    ]
    figures = [
        page.image(solved_grid(result, name), caption)
        for name, result, caption in zip(NAMES, results, captions, strict=True)
    ]
    return ["<h2>Which tasks each agent solves</h2>", page.row(figures)]


def _curve_section(results: list[dict[str, Any]]) -> list[str]:
    curves = {name: result["curve"] for name, result in zip(NAMES, results, strict=True)}
    figure = learning_curves(curves, "test_solved_percent", "unseen tasks solved (%)")
    header = ("iteration", *NAMES)
    rows = [
        (str(a["iteration"]), f"{a['test_solved_percent']:.1f} %", f"{b['test_solved_percent']:.1f} %")
        for a, b in zip(results[0]["curve"], results[1]["curve"], strict=True)
    ]
    return [
        "<h2>Learning curves</h2>",
        page.row([page.image(figure, "Share of unseen tasks solved during training"), page.table(header, rows)]),
    ]


def _metric_section() -> list[str]:
    frames = [decode_frames(optimal_frames(task)[step]) for task in (TASK_X, TASK_Y) for step in SHOWN_STEPS]
    titles = [f"obstacle {task.obstacle_position}, step {step}" for task in (TASK_X, TASK_Y) for step in SHOWN_STEPS]
    names = {"psm": "Policy similarity metric", "pi-bisimulation": "π*-bisimulation"}
    maps = []
    for metric, name in names.items():
        distance = task_metrics([(TASK_X, TASK_Y)], metric, FIGURE_DISCOUNT)[0]
        labels = (f"step, obstacle at {TASK_X.obstacle_position}", f"step, obstacle at {TASK_Y.obstacle_position}")
        maps.append(page.image(heat_map(distance, name, *labels), f"{name} between the states of two tasks"))
    explanation = (
        "The policy similarity metric compares what the optimal agent does from here on. Its light diagonal joins "
        "states at the same distance from the obstacle, where the same jump is due, although the obstacles stand 20 "
        "pixels apart. π*-bisimulation compares rewards, which depend on the distance to the screen's edge, and joins "
        "states at the same step instead. PSE pull the embeddings of states together that the first metric joins."
    )
    return [
        "<h2>What the metric compares</h2>",
        page.paragraph(explanation),
        page.image(frames_strip(frames, titles), "States of two tasks: step 11 and step 31 call for the same jump"),
        page.row(maps),
    ]


def _command_section(results: list[dict[str, Any]]) -> list[str]:
    commands = [JumpingConfig.from_dict(result["config"]).command() for result in results]
    return ["<h2>Repeat the runs</h2>", page.code("\n".join(commands))]
