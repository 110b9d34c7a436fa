import pytest

from pisces.experiments.jumping.report.demo_page import _verdict
from pisces.experiments.jumping.report.tiles import solved_grid
from pisces.reports.figures import frames_strip, heat_map, learning_curves
from pisces.reports.page.html import image, page, paragraph, table


def results(without, with_pse):
    tasks = {"tasks": [[20, 10, "white"]] * 286, "train_tasks": [{}] * 18}
    return [{**tasks, "test_solved_percent": value} for value in (without, with_pse)]


@pytest.mark.parametrize(
    ("without", "with_pse", "words"),
    [(10.0, 40.0, "30.0 points more"), (10.0, 12.0, "too small to tell from chance"), (40.0, 10.0, "hurt, by 30.0")],
)
def test_verdict_is_honest(without, with_pse, words):
    verdict = _verdict(results(without, with_pse))
    assert words in verdict
    assert "268 unseen tasks" in verdict


def test_pages_escape_what_they_are_given():
    bad = "<script>alert('x')</script>"
    text = page(bad, [paragraph(bad, bad), table([bad], [[bad]]), image(heat_map([[1.0]], "t", "x", "y"), bad)])
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") >= 5


def test_solved_grid_shows_solved_and_training_tasks():
    result = {
        "tasks": [[20, 10, "white"], [21, 10, "white"], [20, 10, "red"]],
        "solved": "101",
        "train_tasks": [{"obstacle_position": 20, "floor_height": 10, "color": "white"}],
    }
    (axes,) = solved_grid(result, "title").axes
    tiles = axes.images[0].get_array()
    assert tiles.shape == (11, 26)
    assert (tiles[0, 0], tiles[0, 1], tiles.sum()) == (1, 0, 1)
    assert [text.get_text() for text in axes.texts] == ["T"]


def test_curves_and_frames_have_one_part_each():
    rows = [{"iteration": 1, "a": 2.0}, {"iteration": 2, "a": 3.0}]
    (axes,) = learning_curves({"x": rows, "y": rows}, "a", "label").axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[2.0, 3.0]] * 2
    assert len(frames_strip([[[0.0]], [[1.0]]], ["a", "b"]).axes) == 2
