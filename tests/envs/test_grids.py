import pytest

from pisces.envs.jumping import all_tasks, split_tasks
from pisces.errors import UserError


@pytest.mark.parametrize("grid", ["wide", "narrow", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_splits_partition_the_tasks(grid, seed):
    split = split_tasks(grid, seed)
    parts = [set(split.train), set(split.validation), set(split.heldout)]
    assert set.union(*parts) == set(all_tasks())
    assert sum(map(len, parts)) == 286
    assert set(split.test) == parts[1] | parts[2]
    for task in split.validation:
        distances = [
            abs(task.obstacle_position - other.obstacle_position) + abs(task.floor_height - other.floor_height)
            for other in split.train
        ]
        assert min(distances) == 1


def test_published_sizes():
    wide, narrow = split_tasks("wide"), split_tasks("narrow")
    assert (len(wide.train), len(wide.validation), len(wide.test)) == (18, 54, 268)
    assert len(narrow.train) == 18
    assert {task.obstacle_position for task in narrow.train} == {28, 30, 32, 34, 36, 38}
    assert {task.floor_height for task in wide.train} == {10, 15, 20}


def test_random_grid_depends_on_the_seed_only():
    assert split_tasks("random", 3) == split_tasks("random", 3)
    assert split_tasks("random", 3) != split_tasks("random", 4)
    assert split_tasks("wide", 3) == split_tasks("wide", 4)
    assert max(len(split_tasks("random", seed).train) for seed in range(30)) <= 18


def test_fewer_training_tasks_are_a_subset():
    full = split_tasks("wide")
    for count in (6, 9, 12):
        few = split_tasks("wide", training_tasks=count)
        assert len(few.train) == count
        assert set(few.train) < set(full.train)


def test_fewer_tasks_of_the_random_grid_are_different_ones():
    # Seed 173 samples one task twice, at both ends of the list.
    assert len(split_tasks("random", 173, training_tasks=2).train) == 2


def test_unknown_grid_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'narrow'"):
        split_tasks("narow")


@pytest.mark.parametrize(
    ("arguments", "message"), [({"training_tasks": 0}, "one training task"), ({"seed": -1}, "seed must be an integer")]
)
def test_a_split_needs_tasks_and_a_seed(arguments, message):
    with pytest.raises(UserError, match=message):
        split_tasks("random", **arguments)
