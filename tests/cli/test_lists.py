import pytest

from pisces.cli.lists import parse_names, parse_seeds


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-3", [0, 1, 2, 3]), ("5", [5]), ("0,2,4-5", [0, 2, 4, 5]), (" 1 - 2 , 2", [1, 2])]
)
def test_seeds_are_read(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"), [("9-3", "write 3-9"), ("a", "written as 0-9"), ("", "written as"), ("-1", "written as")]
)
def test_bad_seeds_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        parse_seeds(text)


def test_empty_names_are_explained():
    with pytest.raises(ValueError, match="separated by commas"):
        parse_names(" , ")
