"""Animates one unseen jumping task without and with PSEs: ``python studies/readme_animation.py results``.

The episodes are those of the stored runs: result.json holds the agent's actions, so no checkpoint is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pisces.envs.jumping.env import JumpingEnv
from pisces.experiments.jumping.report.tables import cell_of
from pisces.experiments.registry import experiment
from pisces.reports.colors import method_color
from pisces.reports.results import StoredRun, read_runs

METHODS = {"randconv": "RandConv", "randconv+pse": "RandConv + PSE"}
"""The methods side by side, with their titles."""
TASK = (42, 14, "white")
"""Obstacle position, floor height and color of the task in the animation."""
SEED = 0
PICTURE = Path("docs/images/episodes.gif")
ZOOM, MARGIN, LINE = 4, 12, 26
MILLISECONDS, PAUSE = 60, 2500
PAPER, FAILED, SOLVED = "#ffffff", "#c0392b", "#1e8449"


@dataclass(frozen=True)
class Panel:
    """One agent's episode."""

    title: str
    """Name of the method."""
    color: str
    """Color of the method."""
    frames: Sequence[Image.Image]
    """The enlarged screens, one per state."""
    outcome: str
    """What happened, in a few words."""
    success: bool
    """Whether the episode succeeded."""


def play(actions: str, position: int, height: int) -> tuple[list[Image.Image], bool]:
    """Plays stored actions, one per floor state before the obstacle; returns the screens and whether it succeeds."""
    env = JumpingEnv(position, height, render_mode="rgb_array")
    env.reset()
    screens, terminated, success = [env.render()], False, False
    while not terminated:
        step = len(screens) - 1
        _, _, terminated, _, info = env.step(int(actions[step]) if step < len(actions) else 0)
        screens.append(env.render())
        success = bool(info["success"])
    return [Image.fromarray(np.kron(screen, np.ones((ZOOM, ZOOM, 1), np.uint8))) for screen in screens], success


def describe(actions: str, position: int, success: bool) -> str:
    """Returns the outcome of an episode in a few words."""
    early = position - 14 - actions.find("1")
    if success:
        return "jumps in time: solved"
    if "1" not in actions:
        return "never jumps: failed"
    return f"jumps {abs(early)} step{'s' * (abs(early) > 1)} too {'early' if early > 0 else 'late'}: failed"


def panel(run: StoredRun) -> Panel:
    """Replays the task with the actions of a run."""
    actions = run["actions"][run["tasks"].index(list(TASK))]
    frames, success = play(actions, *TASK[:2])
    color = method_color(run.config.methods, run.config.method)
    return Panel(METHODS[run.config.method], color, frames, describe(actions, TASK[0], success), success)


def draw(panels: Sequence[Panel], step: int) -> Image.Image:
    """Draws one frame of the animation; an episode that has ended stays on its last screen."""
    size = panels[0].frames[0].width
    width = len(panels) * size + (len(panels) + 1) * MARGIN
    image = Image.new("RGB", (width, size + 2 * LINE + 2 * MARGIN), PAPER)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(16)
    for number, shown in enumerate(panels):
        left, ended = MARGIN + number * (size + MARGIN), step >= len(shown.frames) - 1
        center, color = left + size / 2, SOLVED if shown.success else FAILED
        pen.text((center, MARGIN + LINE / 2), shown.title, shown.color, font, "mm")
        image.paste(shown.frames[min(step, len(shown.frames) - 1)], (left, MARGIN + LINE))
        if ended:
            pen.rectangle((left - 3, MARGIN + LINE - 3, left + size + 2, MARGIN + LINE + size + 2), None, color, 3)
            pen.text((center, MARGIN + LINE + size + LINE / 2 + 4), shown.outcome, color, font, "mm")
    return image


def share(runs: Sequence[StoredRun]) -> str:
    """Returns how many runs solve the task."""
    solved = sum(run["solved"][run["tasks"].index(list(TASK))] == "1" for run in runs)
    return f"{solved} of {len(runs)}"


def write(panels: Sequence[Panel], path: Path) -> None:
    """Writes the animation; the last frame stays for a while."""
    frames = [draw(panels, step) for step in range(max(len(shown.frames) for shown in panels))]
    # One palette for all frames, made from the last, which has all colors.
    palette = frames[-1].quantize(32)
    pictures = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    durations = [MILLISECONDS] * (len(pictures) - 1) + [PAUSE]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)


def method_runs(runs: Sequence[StoredRun]) -> Mapping[str, list[StoredRun]]:
    """Returns the runs of the two methods on the wide grid."""
    return {method: [run for run in runs if cell_of(run.config) == (method, "wide", False, 0.0)] for method in METHODS}


def largest_gap(first: Sequence[StoredRun], second: Sequence[StoredRun]) -> tuple[int, int, str]:
    """Returns the task with the largest difference between the shares of runs that solve it."""
    shares = [np.mean([[mark == "1" for mark in run["solved"]] for run in own], axis=0) for own in (first, second)]
    position, height, color = first[0]["tasks"][int(np.argmax(shares[1] - shares[0]))]
    return position, height, color


def caption(runs: Sequence[StoredRun]) -> str:
    """Returns the caption of the animation, as Markdown."""
    first, second = method_runs(runs).values()
    if not first or not second:
        return "*No runs of the two methods are stored.*\n"
    largest = largest_gap(first, second) == TASK
    means = [np.mean([run["test_solved_percent"] for run in own]) for own in (first, second)]
    return (
        "*Both agents were trained on 18 jumping tasks; this one is unseen. "
        f"It is {'the task with the largest' if largest else 'a task with a large'} gap: "
        f"{share(first)} runs solve it\nwith RandConv, {share(second)} with RandConv + PSE. On average over all unseen "
        f"tasks, it is {means[0]:.0f} % and {means[1]:.0f} %.*\n"
    )


def main(root: Path) -> None:
    """Writes the README's animation from the results in a folder."""
    cells = method_runs(read_runs([root], {"jumping": experiment("jumping")}).of("jumping"))
    write([panel(run) for own in cells.values() for run in own if run.config.seed == SEED], PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
