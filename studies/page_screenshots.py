"""Takes pictures of the report page: ``python studies/page_screenshots.py report/report.html docs/images --demo ...``.

Needs Chromium and the extra `browser`. The page is shown without motion, so that pictures do not depend on the time.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from playwright.sync_api import Browser, sync_playwright

from pisces.cli.metric_files import compare_trajectories
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames
from pisces.trajectories import Trajectory


@dataclass(frozen=True)
class Screen:
    """A picture of the page."""

    name: str
    """What its file is called."""
    width: int
    """Width of the window in pixels."""
    height: int
    """Height of the window in pixels."""
    theme: str
    """Light or dark."""
    state: str = ""
    """The part of the address that says what the page shows."""


FIRST_SCREENS = (
    Screen("report_light", 1280, 720, "light"),
    Screen("report_dark", 1280, 720, "dark"),
    Screen("report_phone", 390, 844, "light"),
)
METRIC_SCREEN = Screen("metric_page", 1280, 660, "light")
DEMO_SCREENS = (
    Screen("report_embedding", 1280, 720, "light", "tab=embedding"),
    Screen("report_diagnosis", 1280, 720, "light", "tab=diagnosis"),
)
SIZES = {"desktop": (1280, 720), "phone": (390, 844), "wide": (1920, 1080)}
TABS = ("overview", "compare", "metric", "embedding", "diagnosis", "runs")


def all_screens() -> list[Screen]:
    """Returns every tab at three sizes and in both themes, to look at."""
    return [
        Screen(f"{tab}_{size}_{theme}", *pixels, theme, f"tab={tab}")
        for tab in TABS
        for size, pixels in SIZES.items()
        for theme in ("light", "dark")
    ]


def write_metric_page(folder: Path) -> Path:
    """Writes the page of `pisces metric` for the optimal episodes of two jumping tasks."""
    sides = []
    for position in (25, 45):
        task = JumpingTask(position, 10)
        sides.append(Trajectory(optimal_frames(task), optimal_actions(task)))
    compare_trajectories(sides[0], sides[1], 0.99).write(folder, "obstacle at 25", "obstacle at 45")
    return folder / "metric.html"


def take(browser: Browser, page: Path, screen: Screen, out: Path, **options: Any) -> Path:
    """Writes one picture."""
    size: Any = {"width": screen.width, "height": screen.height}
    theme: Any = screen.theme
    context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
    shown = context.new_page()
    shown.goto(f"{page.resolve().as_uri()}#{screen.state}")
    shown.wait_for_selector("html[data-ready=yes]")
    shown.wait_for_timeout(500)
    path = out / f"{screen.name}.png"
    shown.screenshot(path=path, **options)
    context.close()
    return path


def main(page: Path, out: Path, demo: Path | None = None, every: bool = False) -> None:
    """Write the pictures of the docs.

    Args:
        page: report.html of the committed results.
        out: folder of the pictures.
        demo: report.html of the demo, whose runs have the checkpoints that embeddings and diagnosis need.
        every: write every tab at three sizes and in both themes instead, to look at.
    """
    shots = [(page, screen) for screen in (all_screens() if every else FIRST_SCREENS)]
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        if not every:
            shots.append((write_metric_page(Path(folder)), METRIC_SCREEN))
            shots += [] if demo is None else [(demo, screen) for screen in DEMO_SCREENS]
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for shown, screen in shots:
            print(take(browser, shown, screen, out))
        browser.close()


if __name__ == "__main__":
    tyro.cli(main, config=(tyro.conf.PositionalRequiredArgs,))
