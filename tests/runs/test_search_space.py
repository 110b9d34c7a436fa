import pytest
from hypothesis import given
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.runs.search_space import Choice, Range, grid_cells, parse_space

DEFAULTS = {"learning_rate": 1e-3, "epochs": 3, "weighted": True, "metric": "psm"}


def test_ranges_and_choices_are_read():
    words = ["learning-rate=1e-4:1e-2:log", "epochs=2:9", "weighted=True,False", "metric=psm,true"]
    assert parse_space(words, DEFAULTS) == (
        Range("learning_rate", 1e-4, 1e-2, log=True),
        Range("epochs", 2, 9, whole=True),
        Choice("weighted", (True, False)),
        Choice("metric", ("psm", "true")),
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("learning_rate", "expected name=low:high"),
        ("learning_rate=", "expected name=low:high"),
        ("learnin_rate=1:2", "did you mean 'learning_rate'"),
        ("learning_rate=a:b", "numbers as bounds"),
        ("learning_rate=2:1", "low < high"),
        ("learning_rate=0:1:log", "0 < low < high"),
        ("learning_rate=1:2:lin", "nothing or log"),
        ("epochs=1,1", "distinct values"),
    ],
)
def test_what_is_wrong_is_said(word, message):
    with pytest.raises(UserError, match=message):
        parse_space([word], DEFAULTS)


def test_a_setting_twice_is_refused():
    with pytest.raises(UserError, match="each setting once"):
        parse_space(["epochs=1:2", "epochs=3,4"], DEFAULTS)


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e6), st.floats(0, 1))
def test_quantized_values_stay_within_the_bounds(low, factor, share):
    space = Range("x", low, low * factor)
    value = space.quantize(low + share * (space.high - low))
    assert space.low <= value <= space.high
    assert space.quantize(value) == value


def test_grid_has_every_combination_once():
    cells = list(grid_cells((Choice("a", (1, 2, 3)), Choice("b", ("x", "y")))))
    assert len(cells) == len({tuple(cell.items()) for cell in cells}) == 6
    with pytest.raises(UserError, match="choices such as a=1,3,10"):
        list(grid_cells((Range("a", 1, 2),)))
