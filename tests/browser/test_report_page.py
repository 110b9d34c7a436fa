"""Everything that one can do on the report's page, in headless Chromium: `make test-browser`."""

import json
import shutil

import pytest

from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_frames
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation
from pisces.experiments.jumping.report.diagnosis import diagnose_run
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.registry import all_experiments
from pisces.reports.report import write_report as write_report_of
from pisces.reports.results import read_runs as read_runs_of
from pisces.runs.store import SCHEMA

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
    write_run(folder, "randconv", grid="narrow")
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
    count = page.locator("#results-count")
    measures = "unseen tasks solved (%) or unseen red tasks solved (%)"
    assert count.inner_text() == f"5 of 5 settings; measured by {measures}"
    heading = page.get_by_role("button", name="mean", exact=True)
    heading.click()
    falling = [float(text) for text in column(page, 4)]
    assert falling == sorted(falling, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("mean")
    heading.press("Enter")
    assert [float(text) for text in column(page, 4)] == falling[::-1]
    page.locator("#results-filter").fill("pse WIDE")
    assert count.inner_text().startswith("2 of 5 settings")
    assert set(column(page, 1)) == {"randconv+pse", "pse"}
    page.locator("#results-filter").fill("")
    choose(page, "results-view", "single runs")
    assert count.inner_text().startswith("8 of 8 runs")
    page.locator("#results-filter").fill("nothing like this")
    assert column(page, 1) == []


def test_table_shows_one_experiment_at_a_time(page):
    assert "psm" not in column(page, 1)
    choose(page, "results-experiment", "lqr")
    assert page.locator("#results-count").inner_text() == "1 of 1 settings; measured by error against the oracle"
    assert (column(page, 1), column(page, 2)) == (["psm"], ["500 distractors"])
    choose(page, "results-experiment", "jumping")
    assert len(column(page, 1)) == 5


def test_numbers_lead_to_commands_and_config(page, root):
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


def cell(page, side, position, height):
    return page.locator(f"#sides section >> nth={side}").locator(
        f"[data-position='{position}'][data-height='{height}']"
    )


def test_a_tile_shows_the_agents_episode(page, root):
    choose(page, "method-A", "randconv, wide")
    choose(page, "run-A", "seed 0")
    wanted = JumpingConfig.make("randconv", "paper")
    run = next(run for run in read_runs([root]).runs if run.config == wanted)
    for solved in "10":
        index = run.result["solved"].rindex(solved)
        position, height, _ = run.result["tasks"][index]
        cell(page, 0, position, height).click()
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
        for step in (0, 5, len(frames) - 1):
            page.locator("#step").fill(str(step))
            assert screen(page, "#episodes canvas >> nth=0") == as_screen((2 * frames[step]).astype(int))


def test_episodes_play_step_by_step(page):
    page.locator("#forward").click()
    assert "step 1" in page.locator("#episode-task").inner_text()
    page.locator("#back").press("Enter")
    assert page.locator("#episode-task").inner_text().endswith("step 0")
    page.locator("#play").click()
    for _ in range(600):
        if int(page.locator("#step").input_value()) >= 3:
            break
        page.wait_for_timeout(50)
    page.locator("#play").click()
    assert int(page.locator("#step").input_value()) >= 3
    stopped = page.locator("#step").input_value()
    assert page.locator("#play").inner_text() == "Play"
    page.wait_for_timeout(300)
    assert page.locator("#step").input_value() == stopped


def test_tiles_are_reached_by_keys_and_show_medians_or_shares(page):
    choose(page, "method-A", "randconv, wide")
    cell(page, 0, 25, 12).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("obstacle at 26, floor at 13: solved by")
    assert "obstacle at 26, floor at 13" in page.locator("#episode-task").inner_text()
    assert cell(page, 0, 25, 10).inner_text() == "T"
    shades = "nodes => nodes.map(node => node.style.getPropertyValue('--share'))"
    tiles = page.locator("#sides section >> nth=0").locator(".tasks button")
    assert len(set(tiles.evaluate_all(shades))) > 2
    choose(page, "shade-A", "median over runs")
    assert set(tiles.evaluate_all(shades)) == {"0%", "100%"}


def test_two_methods_stand_side_by_side(page, root):
    choose(page, "method-A", "randconv, wide")
    choose(page, "method-B", "randconv+pse, wide")
    runs = read_runs([root]).of("jumping")
    for side, method in enumerate(("randconv", "randconv+pse")):
        values = [
            run.result["test_solved_percent"]
            for run in runs
            if (run.config.method, run.config.grid) == (method, "wide")
        ]
        text = page.locator("#sides section >> nth=" + str(side)).locator(".summary").inner_text()
        assert text == f"{sum(values) / len(values):.1f} % of unseen tasks solved, mean of {len(values)} seeds"
    assert "with probability 1.00 (3 x 2 pairs)" in page.locator("#verdict").inner_text()
    assert page.locator("#curves polyline").count() == 2
    cell(page, 1, 30, 17).click()
    for side in (0, 1):
        assert cell(page, side, 30, 17).get_attribute("aria-pressed") == "true"
    choose(page, "method-B", "pse, wide, colors")
    choose(page, "color-B", "green obstacles")
    assert "must not jump" in page.locator("#episodes figure >> nth=1").locator(".caption").inner_text()


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
        assert ("Positive pair: yes" in text) == (expected[i].argmin() == j)
        assert screen(page, "#frame-x") == as_screen(optimal_frames(JumpingTask(30, 10))[i])
        assert screen(page, "#frame-y") == as_screen(optimal_frames(JumpingTask(41, 15))[j])
    matrix.press("ArrowDown")
    assert page.locator("#caption-x").inner_text().startswith("x: step 1,")


def test_learned_similarity_stands_beside_the_distance(page, root):
    import numpy as np

    from pisces.envs.jumping import stack_frames
    from pisces.experiments import load

    run = next(run for run in read_runs([root]).runs if run.has_checkpoint)
    agent = load(run.folder)
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


def test_points_of_the_embedding_show_their_frames(page):
    point = page.locator("circle.point[data-position='35'][data-step='21']")
    assert page.locator("circle.point").count() == 6 * 56
    point.dispatch_event("pointerenter")
    assert page.locator("#point-caption").inner_text() == (
        "Obstacle at 35, step 21: obstacle 14 px ahead; the optimal action is jump."
    )
    assert screen(page, "#point-frame") == as_screen(optimal_frames(JumpingTask(35, 10))[21])
    point.focus()
    page.keyboard.press("ArrowRight")
    assert "step 22" in page.locator("#point-caption").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator("#point-caption").inner_text().startswith("Obstacle at 40, step 22")


def test_diagnosis_names_the_tasks_where_the_agent_breaks(page, root):
    run = next(run for run in read_runs([root]).runs if run.has_checkpoint)
    one = diagnose_run(run)
    assert page.locator("#diagnosis-summary").inner_text() == one.summary()
    (cells,) = (row.locator("td").all_inner_texts() for row in page.locator("#diagnosis-runs tbody tr").all())
    assert cells[0] == "randconv+pse, wide, seed 0"
    assert float(cells[1]) == pytest.approx(100 * one.found.alignment, abs=0.06)
    assert cells[-1] == one.worst_task()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#diagnosis-tasks tbody tr").all()]
    assert len(rows) == len(one.tasks)
    assert rows[0][0] == one.worst_task()
    assert not page.locator("#diagnosis-none").is_visible()


def test_text_of_runs_never_runs(page):
    assert f"unknown method {EVIL!r}" in page.locator("ul.notes").inner_text()
    choose(page, "results-experiment", "distracting")
    assert EVIL in page.locator("#results-table").inner_text()
    page.locator("#results-table").get_by_role("button", name="drq").click()
    assert EVIL in page.locator("#source").inner_text()
    page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0


def test_page_fetches_nothing(page, report):
    assert [url for url in page.requests if not url.startswith("data:")] == [report.as_uri()]


def test_tab_reaches_every_part(page):
    reached, last = [], None
    page.locator("nav a").first.focus()
    for _ in range(80):
        page.keyboard.press("Tab")
        last = page.evaluate("document.activeElement.closest('section')?.id")
        reached.append(last)
    parts = ["results", "paper", "compare", "metric", "embedding", "diagnosis"]
    assert [name for name in dict.fromkeys(reached) if name] == parts


def test_phone_and_dark(browser, report):
    page = open_page(browser, report, viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(23, 23, 26)"
    page.locator("#theme").tap()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.locator("#metric-matrix").tap(position={"x": 5, "y": 5})
    assert page.locator("#caption-x").inner_text().startswith("x: step 0,")
    assert page.problems == []
    page.context.close()


def test_without_checkpoints_the_page_says_so(browser, tmp_path, write_run):
    write_run(tmp_path / "runs")
    page = open_page(browser, write_report([tmp_path / "runs"], tmp_path / "out", "none").page)
    assert page.locator("#embedding-none").is_visible()
    assert page.locator("#diagnosis-none").is_visible()
    assert not page.locator("#learned").is_visible()
    assert "needs a run with its checkpoint" in page.locator("#pair").inner_text()
    assert page.problems == []
    page.context.close()


def test_parts_without_content_say_so_or_go(page, browser, tmp_path):
    assert not page.locator("#paper-none").is_visible()
    config = LQRConfig.make("psm", "paper", distractors=70, changes={"width": 30})
    write_result(tmp_path / "run", config, runs=[{"seed": 0, "error": 0.25}])
    other = open_page(browser, write_report([tmp_path], tmp_path / "report", projection="none").page)
    assert "nothing to" in other.locator("#paper").inner_text()
    shown = [link.inner_text() for link in other.locator("nav a").all() if link.is_visible()]
    assert shown == ["Results", "Ours vs. paper", "Figures"]
    assert other.problems == []
    other.context.close()
