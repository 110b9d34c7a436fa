"""Everything that one can do on the report's page, in headless Chromium: `make test-browser`."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pisces.cli import main
from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_actions, optimal_frames
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation
from pisces.experiments.jumping.report.diagnosis import diagnose_run
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.minigrid.mdp import solve_level
from pisces.experiments.minigrid.page import path
from pisces.experiments.minigrid.tasks import unseen_tasks
from pisces.experiments.registry import all_experiments
from pisces.reports.report import write_report as write_report_of
from pisces.reports.results import read_runs as read_runs_of
from pisces.runs.store import SCHEMA
from pisces.trajectories import Trajectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-browser (as root)"),
]
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'")


def read_runs(roots):
    return read_runs_of(roots, all_experiments())


def write_report(roots, out, projection):
    return write_report_of(roots, out, all_experiments(), projection)


def write_result(folder, config, **values):
    folder.mkdir()
    result = {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict(), **values}
    (folder / "result.json").write_text(json.dumps(result))


@pytest.fixture(scope="module")
def root(tmp_path_factory, write_run):
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1, 2):
        write_run(folder, "randconv", seed, 0.2 + 0.3 * seed)
    write_run(folder, "randconv+pse", 0, 0.9, checkpoint=True)
    write_run(folder, "randconv+pse", 1, 0.95)
    write_run(folder, "randconv", grid="narrow", checkpoint=True)
    write_run(folder, "pse", colors=True)
    write_result(folder / "linear", LQRConfig.make("psm", "paper"), runs=[{"seed": 0, "error": 0.25}])
    write_run(folder, "dropout+l2")
    # The text of a run reaches the page as a setting, and as the reason why a run is left out.
    evil = DistractingConfig.make("drq", "cpu", davis=EVIL)
    write_result(folder / "control", evil, test_return=1.0, train_return=2.0)
    write_run(folder, "dropout+l2", 1, change=lambda result: result["config"].update(method=EVIL))
    return folder


@pytest.fixture(scope="module")
def report(root, tmp_path_factory):
    return write_report([root], tmp_path_factory.mktemp("report"), projection="pca").page


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def open_page(browser, report, **settings):
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.problems, page.requests = [], []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    return page


@pytest.fixture
def page(browser, report):
    opened = open_page(browser, report)
    yield opened
    assert opened.problems == []
    opened.context.close()


def choose(page, name, label):
    page.locator(f"#{name}").select_option(label=label)


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    page.wait_for_selector(f"#panel-{name.lower()}[data-ready=yes]")


def column(page, number):
    return page.locator(f"#results-table tbody td:nth-child({number})").all_inner_texts()


def screen(page, selector):
    """The red channel of a canvas of 60 x 60, rows from the top."""
    script = "c => Array.from(c.getContext('2d').getImageData(0, 0, 60, 60).data).filter((_, i) => i % 4 == 0)"
    values = page.locator(selector).evaluate(script)
    return [values[60 * row : 60 * row + 60] for row in range(60)]


def as_screen(frame):
    """A stored frame as the page draws it: 0, 128, 255."""
    return [[(0, 128, 255)[value] for value in row] for row in frame.tolist()]


def test_table_sorts_and_filters(page):
    open_tab(page, "Runs")
    count = page.locator("#results-count")
    assert count.inner_text() == "4 of 4 settings; unseen tasks solved (%), higher is better"
    falling = [float(text) for text in column(page, 4)]
    assert falling == sorted(falling, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("mean")
    page.get_by_role("button", name="mean", exact=True).press("Enter")
    assert [float(text) for text in column(page, 4)] == falling[::-1]
    for _ in range(2):  # missing values come last, whichever way
        page.get_by_role("button", name="std", exact=True).click()
        texts = column(page, 6)
        assert texts.index("–") == len([text for text in texts if text != "–"])
    page.locator("#results-filter").fill("pse WIDE")
    assert count.inner_text().startswith("1 of 4 settings")
    assert column(page, 1) == ["randconv+pse"]
    page.locator("#results-filter").fill("")
    choose(page, "results-measure", "unseen red tasks solved (%)")
    assert column(page, 1) == ["pse"]
    choose(page, "results-measure", "unseen tasks solved (%)")
    choose(page, "results-view", "single run")
    assert count.inner_text().startswith("7 of 7 runs")
    assert "training" in page.locator("#results-table thead").inner_text()
    page.locator("#results-filter").fill("nothing like this")
    assert column(page, 1) == []


def test_tables_are_copied_as_text(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_tab(page, "Runs")
    page.locator("#results-controls").get_by_role("button", name="CSV").click()
    page.get_by_role("button", name="Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0] == "method,trained on,changes,mean,seeds,std,95 % CI,interquartile mean,paper"
    assert len(lines) == 5


def test_page_shows_one_experiment_at_a_time(page):
    open_tab(page, "Runs")
    assert "psm" not in column(page, 1)
    choose(page, "experiment", "lqr")
    assert page.locator("#results-count").inner_text() == "1 of 1 settings; error against the oracle, lower is better"
    assert (column(page, 1), column(page, 2)) == (["psm"], ["500 distractors"])
    assert page.get_by_role("tab").all_inner_texts() == ["Overview", "Compare", "Runs"]
    open_tab(page, "Overview")
    assert page.locator("#headline").inner_text() == "PSM aggregation: 0.25"
    assert not page.locator("#watch").is_visible()
    choose(page, "experiment", "jumping")
    assert page.locator("#watch").is_visible()


def test_numbers_lead_to_commands_and_config(page, root):
    open_tab(page, "Runs")
    page.locator("#results-table").get_by_role("button", name="randconv+pse").click()
    dialog = page.locator("dialog#source")
    assert dialog.locator(".commands").inner_text().splitlines() == [
        f"pisces train jumping --method randconv+pse --preset paper --seed {seed}" for seed in (0, 1)
    ]
    stored = next(run for run in read_runs([root]).runs if run.config.method == "randconv+pse")
    config = {name: value for name, value in stored.config.as_dict().items() if name != "seed"}
    assert json.loads(dialog.locator(".config").inner_text()) == config
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.locator("#paper-tables button.link").first.click()
    assert "pisces train jumping" in dialog.locator(".commands").inner_text()
    dialog.get_by_role("button", name="Close").click()
    assert not dialog.is_visible()


def tile(page, position, height):
    return page.locator(f"#difference [data-position='{position}'][data-height='{height}']")


def stored_run(root, method, seed=0):
    wanted = JumpingConfig.make(method, "paper", seed=seed)
    return next(run for run in read_runs([root]).runs if run.config == wanted)


def test_first_screen_shows_headline_episodes_and_map(page, root):
    values = [stored_run(root, "randconv", seed).value for seed in (0, 1, 2)]
    others = [stored_run(root, "randconv+pse", seed).value for seed in (0, 1)]
    assert page.locator("#headline").inner_text() == (
        f"RandConv + PSE solves {sum(others) / 2:.1f} % of unseen tasks, RandConv {sum(values) / 3:.1f} %"
    )
    evidence = page.locator("#evidence").inner_text()
    assert "2 seeds, 95 % CI" in evidence
    assert "On the same 2 seeds" in evidence
    assert "must jump once" in page.locator("#rule").inner_text()
    badges = page.locator(".badge").all_inner_texts()
    assert badges[0].startswith("✗ failed: never jumps")
    assert badges[1].startswith("✓ solved")
    page.set_viewport_size({"width": 1280, "height": 720})
    for name in ("#headline", "#rule", "#episodes", "#play", "#difference", "#difference-legend"):
        box = page.locator(name).bounding_box()
        assert box["y"] + box["height"] <= 720, name
    assert page.locator("#ranking svg[role=img]").first.is_visible()


def test_a_tile_shows_the_agents_episode(page, root):
    choose(page, "run-A", "seed 0")
    run = stored_run(root, "randconv")
    for solved in "10":
        index = run.result["solved"].rindex(solved)
        position, height, _ = run.result["tasks"][index]
        tile(page, position, height).click()
        env = JumpingEnv(position, height)
        frame, _ = env.reset()
        frames, ended = [frame], False
        while not ended:
            actions = run.result["actions"][index]
            step = len(frames) - 1
            frame, _, ended, _, info = env.step(int(actions[step]) if step < len(actions) else 0)
            frames.append(frame)
        assert info["success"] == (solved == "1")
        caption = page.locator("#episodes figure >> nth=0").locator(".caption").inner_text()
        assert ("reaches the end" in caption) == info["success"]
        assert ("solved" in page.locator(".badge >> nth=0").inner_text()) == info["success"]
        for step in (0, 5, len(frames) - 1):
            page.locator("#step").fill(str(step))
            assert screen(page, "#episodes canvas >> nth=0") == as_screen((2 * frames[step]).astype(int))


def test_episodes_loop_pause_and_step(page):
    assert page.locator("#play").inner_text() == "Pause"
    for _ in range(600):
        if int(page.locator("#step").input_value()) >= 3:
            break
        page.wait_for_timeout(50)
    page.locator("#play").click()
    stopped = page.locator("#step").input_value()
    assert int(stopped) >= 3
    page.wait_for_timeout(300)
    assert page.locator("#step").input_value() == stopped
    page.locator("#step").fill("0")
    page.locator("#forward").click()
    assert page.locator("#episode-task").inner_text().endswith("step 1")
    page.locator("#back").press("Enter")
    assert page.locator("#episode-task").inner_text().endswith("step 0")


def test_without_motion_the_last_step_is_shown(browser, report):
    page = open_page(browser, report, reduced_motion="reduce")
    assert page.locator("#play").inner_text() == "Play"
    last = page.locator("#step").get_attribute("max")
    page.wait_for_timeout(300)
    assert page.locator("#step").input_value() == last
    page.context.close()


def test_keys_move_between_tasks_and_both_episodes_follow(page, root):
    tile(page, 25, 12).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("document.activeElement.dataset.height === '13'")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    index = stored_run(root, "randconv").result["tasks"].index([26, 13, "white"])
    counts = [
        sum(stored_run(root, method, seed).result["solved"][index] == "1" for seed in range(count))
        for method, count in (("randconv", 3), ("randconv+pse", 2))
    ]
    assert focused.startswith(
        f"obstacle at 26, floor at 13: A solved by {counts[0]} of 3 runs, B solved by {counts[1]} of 2 runs"
    )
    assert "obstacle at 26, floor at 13" in page.locator("#episode-task").inner_text()
    assert tile(page, 25, 10).inner_text() == "T"
    captions = page.locator(".caption").all_inner_texts()
    assert f"Solved by {counts[0]} of 3 runs" in captions[0]
    assert f"Solved by {counts[1]} of 2 runs" in captions[1]


def test_methods_and_colors_are_chosen_per_side(page):
    choose(page, "method-B", "pse, wide, colors")
    choose(page, "color-B", "green")
    assert "it must not jump" in page.locator("#episodes figure >> nth=1").locator(".caption").inner_text()
    assert page.locator("#headline").inner_text().startswith("PSE solves")


def test_chips_choose_what_is_compared(page):
    open_tab(page, "Compare")
    curves = page.locator("#curves svg path[stroke-width], #curves svg g path")
    curves.first.wait_for(state="attached")
    chips = page.locator("#chips .chip")
    names = {text.split("n=")[0].strip() for text in chips.all_inner_texts()}
    assert names == {"Dropout and l2", "RandConv", "RandConv + PSE"}
    assert page.locator("#share-maps figure").count() == 3
    chips.filter(has_text="Dropout").click()
    assert chips.filter(has_text="Dropout").get_attribute("aria-pressed") == "false"
    assert page.locator("#share-maps figure").count() == 2
    page.locator("#differences svg").first.wait_for()
    assert "Difference from RandConv on the same seeds" in page.locator("#differences").inner_text()
    for place in (2, 1):
        chips.nth(place).click()
    page.locator("#compare-none").wait_for()
    assert page.locator("#share-maps figure").count() == 0


def test_methods_trained_on_different_tasks_are_not_paired(page):
    choose(page, "method-A", "randconv, narrow")
    assert page.locator("#evidence").inner_text().startswith("Trained on different tasks: wide (2 seeds")
    open_tab(page, "Compare")
    assert page.locator("#baseline option:checked").inner_text() == "randconv, narrow"
    assert "The baseline was trained on other tasks (narrow)" in page.locator("#differences").inner_text()
    choose(page, "baseline", "Dropout and l2")
    page.locator("#differences svg").first.wait_for()


def test_small_errors_are_drawn_on_a_logarithmic_axis(browser, tmp_path):
    config = LQRConfig.make("psm", "paper", distractors=70, changes={"width": 30})
    runs = [{"seed": seed, "error": error} for seed, error in enumerate((1.2e-5, 1.4e-5, 1.1e-5))]
    write_result(tmp_path / "run", config, runs=runs)
    page = open_page(browser, write_report([tmp_path], tmp_path / "report", projection="none").page)
    assert "0.000012" in page.locator("#headline").inner_text()
    open_tab(page, "Compare")
    runs_chart = page.locator("#single-runs svg").first
    runs_chart.wait_for()
    assert runs_chart.locator("circle").count() == 3
    assert "0.000012" in runs_chart.text_content()  # a tick
    assert page.problems == []
    page.context.close()


def test_a_link_restores_the_view(page, browser, report):
    open_tab(page, "Compare")
    page.locator("#compare-where").select_option("narrow")
    link = page.evaluate("location.href")
    other = open_page(browser, report)
    other.goto("about:blank")
    other.goto(link)
    other.wait_for_selector("html[data-ready=yes]")
    assert other.get_by_role("tab", name="Compare").get_attribute("aria-selected") == "true"
    assert other.locator("#compare-where").input_value() == "narrow"
    assert other.problems == []
    other.context.close()


def test_charts_are_saved(page):
    page.locator("#ranking svg").first.wait_for()
    for kind in ("SVG", "PNG"):
        with page.expect_download() as saved:
            page.locator("#ranking").get_by_role("button", name=kind).click()
        assert saved.value.suggested_filename.endswith(f".{kind.lower()}")
        assert Path(saved.value.path()).stat().st_size > 1000


RULES = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}


def violations(page):
    """The rules of accessibility that a page breaks, each with an element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install '.[browser]'").Axe()
    found = axe.run(page, options=RULES).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:120]) for one in found]


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_rules_of_accessibility_hold(browser, report, theme, width):
    page = open_page(
        browser, report, color_scheme=theme, reduced_motion="reduce", viewport={"width": width, "height": 720}
    )
    for name in page.get_by_role("tab").all_inner_texts():
        open_tab(page, name)
        page.wait_for_timeout(300)
        assert violations(page) == [], name
    page.context.close()


def test_scripts_pass_their_own_tests():
    from playwright._impl._driver import compute_driver_executable

    node = compute_driver_executable()[0]
    files = sorted(map(str, (Path(__file__).parents[1] / "page").glob("*.test.js")))
    done = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "# pass" in done.stdout or "pass " in done.stdout


@pytest.mark.parametrize(
    ("title", "metric"),
    [
        ("policy similarity metric", "psm"),
        ("bisimulation", "bisimulation"),
        ("π*-bisimulation", "pi-bisimulation"),
        ("true similarity (pixels to the obstacle)", "true"),
    ],
)
def test_metric_matrix_tells_of_two_states(page, title, metric):
    open_tab(page, "Metric")
    choose(page, "metric-name", title)
    page.locator("#position-x").select_option("30")
    page.locator("#position-y").select_option("41")
    page.locator("#height-y").select_option("15")
    tasks = JumpingTask(30, 10), JumpingTask(41, 15)
    whole = metric == "bisimulation"
    expected = episode_bisimulation(*tasks, 0.99) if whole else task_metrics([tasks], metric, 0.99)[0]
    matrix = page.locator("#metric-matrix")
    box = matrix.bounding_box()
    for i, j in ((16, 27), (3, 40), (50, 50), (0, 0)):
        matrix.hover(position={"x": (j + 0.5) / 56 * box["width"], "y": (i + 0.5) / 56 * box["height"]})
        text = page.locator("#pair").inner_text()
        assert float(text.split()[1].rstrip(".")) == pytest.approx(expected[i, j], abs=0.06)
        assert ("Match: yes" in text) == (expected[i].argmin() == j)
        assert screen(page, "#frame-x") == as_screen(optimal_frames(JumpingTask(30, 10))[i])
        assert screen(page, "#frame-y") == as_screen(optimal_frames(JumpingTask(41, 15))[j])
    matrix.press("ArrowDown")
    assert page.locator("#caption-x").inner_text().startswith("x: step 1,")
    assert page.locator("#matrices svg[role=img]").count() >= 2  # the matrix and its color bar
    assert "step of y (obstacle at 41)" in page.locator("#matrices").inner_text()


def test_a_sentence_says_what_two_states_have_in_common(page):
    open_tab(page, "Metric")
    meaning = page.locator("#pair-meaning")
    assert meaning.inner_text() == (
        "The obstacle is equally far in both. From here on, the same actions are optimal in both."
    )
    page.locator("#metric-matrix").press("ArrowLeft")
    assert meaning.inner_text() == (
        "The obstacle is 1 px nearer in x. Different actions are optimal: a jump in x, a move right in y."
    )


def test_learned_similarity_stands_beside_the_distance(page, root):
    import numpy as np

    from pisces.envs.jumping import stack_frames
    from pisces.experiments import load

    run = next(run for run in read_runs([root]).runs if run.has_checkpoint and run.config.method == "randconv+pse")
    agent = load(run.folder)
    open_tab(page, "Metric")
    choose(page, "learned-run", "randconv+pse, wide, seed 0")
    matrix = page.locator("#learned-matrix")
    matrix.focus()
    for _ in range(11):
        matrix.press("ArrowUp")
    matrix.press("ArrowLeft")
    vectors = [
        agent.embed(stack_frames(optimal_frames(JumpingTask(p, 10)))[step].transpose(2, 0, 1)[None] * 0.5)[0]
        for p, step in ((25, 0), (45, 30))
    ]
    cosine = vectors[0] @ vectors[1] / np.prod([np.linalg.norm(vector) for vector in vectors])
    assert page.locator("#caption-y").inner_text().startswith("y: step 30,")
    text = page.locator("#pair").inner_text()
    assert float(text.split("Learned similarity: ")[1].rstrip(".")) == pytest.approx(cosine, abs=0.02)


def test_embeddings_of_methods_stand_side_by_side_and_mark_the_same_state(page):
    open_tab(page, "Embedding")
    assert page.locator(".plane h2").all_inner_texts() == ["randconv, narrow, seed 0", "randconv+pse, wide, seed 0"]
    plane = page.locator("#plane-0")
    plane.focus()
    caption = page.locator("#point-caption")
    for _ in range(3):
        plane.press("ArrowUp")
    first = caption.inner_text()
    plane.press("ArrowDown")
    plane.press("ArrowRight")
    assert caption.inner_text() != first
    position, step = (int(text) for text in re.findall(r"Obstacle at (\d+), step (\d+)", caption.inner_text())[0])
    assert screen(page, "#point-frame") == as_screen(optimal_frames(JumpingTask(position, 10))[step])
    assert page.locator(".plane .cover .point-cursor").count() == 2 * 2
    box = plane.bounding_box()
    plane.hover(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert "Nearest state of another episode here" in page.locator(".plane .neighbor >> nth=1").inner_text()


def test_embedding_and_metric_lead_to_each_other(page):
    open_tab(page, "Embedding")
    for _ in range(2):
        page.locator("#plane-0").press("ArrowRight")
    text = page.locator(".plane .neighbor >> nth=0").inner_text()
    position, step = re.findall(r"obstacle at (\d+), step (\d+)", text)[0]
    chosen = re.findall(r"Obstacle at (\d+), step (\d+)", page.locator("#point-caption").inner_text())[0]
    page.locator(".plane .neighbor >> nth=0").get_by_role("button").click()
    page.wait_for_selector("#panel-metric[data-ready=yes]")
    assert [page.locator(f"#position-{side}").input_value() for side in "xy"] == [chosen[0], position]
    assert page.locator("#caption-x").inner_text().startswith(f"x: step {chosen[1]},")
    assert page.locator("#caption-y").inner_text().startswith(f"y: step {step},")
    page.locator("#metric-matrix").press("ArrowUp")
    page.locator("#pair-to-embedding").click()
    page.wait_for_selector("#panel-embedding:not([hidden])")
    assert f"step {int(chosen[1]) - 1}:" in page.locator("#point-caption").inner_text()


def test_diagnosis_shows_the_failing_state_and_what_misled_the_agent(page, root):
    run = next(run for run in read_runs([root]).runs if run.has_checkpoint and run.config.method == "randconv+pse")
    one = diagnose_run(run)
    open_tab(page, "Diagnosis")
    choose(page, "diagnosis-run", "randconv+pse, wide, seed 0")
    assert page.locator("#diagnosis-summary").inner_text() == one.summary()
    assert "guarantee" not in page.locator("#panel-diagnosis").inner_text()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#diagnosis-tasks tbody tr").all()]
    assert len(rows) == len(one.tasks)
    assert [row[1] for row in rows] == ["fails"] * one.solved.count(False) + ["solves it"] * one.solved.count(True)
    failed = next(place for place, solved in enumerate(one.solved) if not solved)
    name, task = one.found.environments[failed].name, one.tasks[failed]
    page.locator("#diagnosis-tasks").get_by_role("button", name=name).click()
    assert page.locator("#failure-title").inner_text() == f"Failed: {name}"
    text = page.locator("#failure-text").inner_text()
    assert text.startswith('The expert\'s action is "jump", the agent\'s "move right".')
    assert screen(page, "#failure-frames canvas >> nth=0") == as_screen(optimal_frames(task)[task.jump_step])
    titles = page.locator(".frame-title").all_inner_texts()
    assert titles[1:] == ["Nearest training state in the embedding", "Nearest training state by the metric"]
    solved = one.found.environments[one.solved.index(True)].name
    page.locator("#diagnosis-tasks").get_by_role("button", name=solved).click()
    assert "acts as the expert in every state" in page.locator("#failure-text").inner_text()
    assert not page.locator("#failure-frames").is_visible()


def test_levels_of_minigrid_show_the_paths_of_both_agents(browser, tmp_path):
    for method, share in (("bc", 0.0), ("bc+pse", 1.0)):
        config = MiniGridConfig.make(method, "standard", shift="layout")
        levels = [solve_level("crossing", task.level) for task in unseen_tasks(config, test=True)]
        actions = ["".join(map(str, level.expert_episode()[1].tolist())) if share else "0" for level in levels]
        episodes = {
            "tasks": [[task.level, task.theme] for task in unseen_tasks(config, test=True)],
            "actions": actions,
            "solved": str(int(share)) * len(levels),
        }
        percent = {f"{part}_solved_percent": 100 * share for part in ("train", "validation", "test")}
        write_result(tmp_path / method, config, **percent, episodes=episodes)
    page = open_page(browser, write_report([tmp_path], tmp_path / "report", projection="none").page)
    tiles = page.locator("#level-tiles button")
    assert tiles.count() == 12
    outcomes = page.locator("#level-sides .outcome")
    assert outcomes.all_inner_texts()[0] == "✗ never moves"
    cells = path("crossing", unseen_tasks(config, test=True)[0], actions[0])
    assert outcomes.all_inner_texts()[1] == f"✓ reaches the goal in {len(cells) - 1} moves"
    drawn = page.locator("#level-sides polyline.path >> nth=1").get_attribute("points")
    assert drawn == " ".join(f"{x + 0.5:g},{y + 0.5:g}" for x, y in cells)
    tiles.first.press("ArrowRight")
    page.wait_for_function("document.activeElement.dataset.task === '1'")
    assert page.locator("#level-sides polyline.path >> nth=1").get_attribute("points") != drawn
    assert "task=1" in page.evaluate("location.hash")
    tiles.nth(5).click()
    assert page.locator("#level-tiles button.chosen").inner_text() == "6"
    assert violations(page) == []
    assert page.problems == []
    page.context.close()


def test_levels_of_minigrid_without_recorded_episodes_have_no_outcome(browser, tmp_path):
    for method in ("bc", "bc+pse"):
        config = MiniGridConfig.make(method, "standard", shift="layout")
        percent = {f"{part}_solved_percent": 50.0 for part in ("train", "validation", "test")}
        tasks = [[task.level, task.theme] for task in unseen_tasks(config, test=True)]
        recorded = {"episodes": {"tasks": tasks, "actions": ["0"] * len(tasks), "solved": "0" * len(tasks)}}
        write_result(tmp_path / method, config, **percent, **(recorded if method == "bc" else {}))
    page = open_page(browser, write_report([tmp_path], tmp_path / "report", projection="none").page)
    assert "A fails, B not recorded" in page.locator("#level-tiles button").first.get_attribute("title")
    assert page.locator("#level-legend").inner_text() == "not recorded for both"
    assert page.locator("#level-sides .outcome").all_inner_texts()[1] == "no recorded episode"
    assert page.problems == []
    page.context.close()


def test_text_of_runs_never_runs(page):
    open_tab(page, "Runs")
    assert f"unknown method {EVIL!r}" in page.locator("ul.notes").inner_text()
    choose(page, "experiment", "distracting")
    assert EVIL in page.locator("#results-table").inner_text()
    page.locator("#results-table").get_by_role("button", name="drq").click()
    assert EVIL in page.locator("#source").inner_text()
    page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0


def test_page_fetches_nothing(page, report):
    assert [url for url in page.requests if not url.startswith("data:")] == [report.as_uri()]


def test_ten_tabs_reach_every_control_of_the_first_screen(page):
    reached = []
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert reached[0] == "skip"
    assert {"tab-overview", "experiment", "method-A", "method-B", "play"} <= set(reached[:10])
    assert "chosen" in reached
    page.locator("#tab-overview").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#panel-compare[data-ready=yes]")
    assert page.evaluate("document.activeElement.id") == "tab-compare"


def test_phone_and_dark(browser, report):
    page = open_page(browser, report, viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    for name in page.get_by_role("tab").all_inner_texts():
        open_tab(page, name)
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(23, 23, 26)"
    page.locator("#theme").tap()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    open_tab(page, "Metric")
    page.locator("#metric-matrix").tap(position={"x": 5, "y": 5})
    assert page.locator("#caption-x").inner_text().startswith("x: step 0,")
    open_tab(page, "Overview")
    sizes = page.locator("#difference button").evaluate_all(
        "nodes => nodes.map(node => node.getBoundingClientRect().width)"
    )
    assert min(sizes) >= 24
    assert page.problems == []
    page.context.close()


def test_without_checkpoints_tabs_that_need_them_are_hidden(browser, tmp_path, write_run):
    write_run(tmp_path / "runs")
    page = open_page(browser, write_report([tmp_path / "runs"], tmp_path / "out", "none").page)
    assert page.get_by_role("tab").all_inner_texts() == ["Overview", "Compare", "Metric", "Runs"]
    assert "RandConv: " in page.locator("#headline").inner_text()
    open_tab(page, "Metric")
    assert page.locator("#learned-matrix").count() == 0
    assert "needs a run with its checkpoint" in page.locator("#pair").inner_text()
    assert page.problems == []
    page.context.close()


def test_parts_without_content_go(page, browser, tmp_path):
    open_tab(page, "Runs")
    assert page.locator("#paper").is_visible()
    config = LQRConfig.make("psm", "paper", distractors=70, changes={"width": 30})
    write_result(tmp_path / "run", config, runs=[{"seed": 0, "error": 0.25}])
    other = open_page(browser, write_report([tmp_path], tmp_path / "report", projection="none").page)
    assert other.get_by_role("tab").all_inner_texts() == ["Overview", "Compare", "Runs"]
    open_tab(other, "Runs")
    assert not other.locator("#paper").is_visible()
    assert not other.locator("label:has(#experiment)").is_visible()
    assert other.problems == []
    other.context.close()


def test_pisces_metric_opens_the_same_view(browser, tmp_path):
    files = [tmp_path / f"obstacle_{position}.npz" for position in (25, 45)]
    for file, position in zip(files, (25, 45), strict=True):
        task = JumpingTask(position, 10)
        Trajectory(optimal_frames(task), optimal_actions(task)).save(file)
    assert main(["metric", *map(str, files), "--out", str(tmp_path / "out")]) == 0
    page = open_page(browser, tmp_path / "out" / "metric.html")
    matrix = page.locator("#metric-matrix")
    box = matrix.bounding_box()
    matrix.hover(position={"x": 31.5 / 56 * box["width"], "y": 11.5 / 56 * box["height"]})
    assert page.locator("#pair-meaning").inner_text() == "From here on, the same actions are taken in both."
    assert page.locator("#caption-x").inner_text() == "x: obstacle_25, state 11; action 1"
    assert page.locator("#pair").inner_text().startswith("Distance 0.")
    assert screen(page, "#frame-x") == as_screen(optimal_frames(JumpingTask(25, 10))[11])
    matrix.press("ArrowLeft")
    assert page.locator("#pair-meaning").inner_text() == ("Different actions are taken: action 1 in x, action 0 in y.")
    assert [url for url in page.requests if not url.startswith(("data:", "file:"))] == []
    assert violations(page) == []
    assert page.problems == []
    page.context.close()


def test_pisces_metric_tells_of_episodes_that_end_and_of_ties(browser, tmp_path):
    files = [tmp_path / name for name in ("short.npz", "long.npz")]
    for file, actions in zip(files, ([1, 0], [1, 0, 1]), strict=True):
        Trajectory(np.arange(len(actions)), np.array(actions)).save(file)
    assert main(["metric", *map(str, files), "--discount", "0.9", "--out", str(tmp_path / "out")]) == 0
    page = open_page(browser, tmp_path / "out" / "metric.html")
    page.locator("#metric-matrix").hover(position={"x": 2, "y": 2})
    assert page.locator("#pair").inner_text().startswith("Distance 8.1.")
    assert page.locator("#pair-meaning").inner_text() == "The same actions are taken until one of the episodes ends."
    page.context.close()

    same = tmp_path / "same.npz"
    Trajectory(np.arange(2), np.array([0, 0])).save(same)
    assert main(["metric", str(same), str(same), "--out", str(tmp_path / "tie")]) == 0
    page = open_page(browser, tmp_path / "tie" / "metric.html")
    page.locator("#metric-matrix").press("ArrowRight")
    assert page.locator("#pair").inner_text() == "Distance 0. No state of y is nearer to this state of x."
    assert page.problems == []
    page.context.close()
