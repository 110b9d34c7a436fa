"""The page of `pisces metric`: frames, numbers and distances that it packs."""

import base64
import io

import numpy as np
import pytest
from matplotlib.image import imread
from page_data import page_data

from pisces.reports.frames import frame_images
from pisces.reports.metric_page import MOST_STATES, Side, metric_page


def packed(distance, *sides, nearest=None):
    nearest = distance.argmin(axis=1) if nearest is None else nearest
    return page_data(metric_page(distance, nearest, "psm", sides))


def distances(data):
    return np.frombuffer(base64.b64decode(data["distance"]), "<f4").reshape(data["shape"])


def test_distances_and_neighbors_are_those_given():
    rng = np.random.default_rng(0)
    distance = rng.random((4, 7))
    data = packed(distance, Side("a", actions=[0, 1, 1, 0]), Side("b"))
    np.testing.assert_allclose(distances(data), distance, rtol=1e-6)
    assert data["nearest"] == distance.argmin(axis=1).tolist()
    assert [side["actions"] for side in data["sides"]] == [[0, 1, 1, 0], None]


def test_of_many_states_evenly_spaced_ones_are_shown():
    count = 2 * MOST_STATES + 1
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(3))).astype(float)
    data = packed(distance, Side("a"), Side("b"))
    assert len(data["states"][0]) <= MOST_STATES
    np.testing.assert_allclose(distances(data), distance[data["states"][0]])


@pytest.mark.parametrize(
    ("shape", "shown"),
    [((5, 20, 30), True), ((5, 20, 30, 3), True), ((5, 4, 20, 30), True), ((5, 2), False), ((5, 3, 3), False)],
)
def test_observations_that_are_images_become_frames(shape, shown):
    values = np.random.default_rng(1).random(shape)
    images = frame_images(values)
    assert (images is not None) == shown
    if images is not None:
        assert images.shape == (5, 20, 30, 3)
        assert (images.min(), images.max()) == (0, 255)


def test_of_four_stacked_gray_frames_the_newest_is_shown():
    frames = np.arange(100, 140, 10, dtype=np.uint8)
    for shape, axis in (((2, 16, 16, 4), 3), ((2, 4, 16, 16), 1)):
        stacked = np.moveaxis(np.broadcast_to(frames, (2, 16, 16, 4)), 3, axis).reshape(shape)
        assert (frame_images(stacked) == 130).all()
    colors = np.array([10, 20, 30, 255], dtype=np.uint8)
    assert (frame_images(np.broadcast_to(colors, (2, 16, 16, 4))) == colors[:3]).all()


def test_a_sprite_holds_every_frame():
    frames = np.random.default_rng(2).integers(0, 256, (7, 9, 11, 3), dtype=np.uint8)
    data = packed(np.ones((7, 2)), Side("a", frames), Side("b", np.arange(4.0).reshape(2, 2)))
    sprite = data["sides"][0]["frames"]
    image = imread(io.BytesIO(base64.b64decode(sprite["source"].partition(",")[2])), format="png")[..., :3]
    for number, frame in enumerate(frames):
        row, column = divmod(number, sprite["columns"])
        tile = image[9 * row : 9 * row + 9, 11 * column : 11 * column + 11]
        np.testing.assert_array_equal(np.rint(255 * tile), frame)
    assert data["sides"][1]["numbers"] == ["0, 1", "2, 3"]


def test_names_of_files_are_escaped():
    text = metric_page(np.ones((1, 1)), np.array([0]), "psm", (Side("<b>"), Side("y")))
    assert "<b>" not in text.partition("<script")[0].partition("<body>")[2]


def test_actions_may_be_vectors_and_observations_anything():
    sides = (Side("a", np.array(["x", "y"]), ["0, 1", "1, 1"]), Side("b", np.zeros((2, 0)), [0, 1]))
    data = packed(np.ones((2, 2)), *sides)
    assert [side["actions"] for side in data["sides"]] == [["0, 1", "1, 1"], [0, 1]]
    assert [side["numbers"] for side in data["sides"]] == [None, ["", ""]]


def test_states_of_mdps_are_marked_by_dots():
    sides = Side("a", in_sequence=False), Side("b", in_sequence=False)
    assert "Green dots mark" in metric_page(np.ones((1, 1)), np.array([0]), "psm", sides)
    assert "The green line" in metric_page(np.ones((1, 1)), np.array([0]), "psm", (Side("a"), Side("b")))
