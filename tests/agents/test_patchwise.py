"""The patch-wise path must give the plain network's numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pisces.agents.imitation.encoders import ImageEncoder, PatchEncoder
from pisces.agents.imitation.gather import gather_rows, sum_rows_relu
from pisces.agents.imitation.networks import JumpingNetwork
from pisces.agents.imitation.patches import build_index, distinct_rows, renumber, select
from pisces.agents.imitation.patchwise import represent_selection
from pisces.augment import random_kernel
from pisces.envs.jumping import JumpingTask, optimal_frames, stack_frames

TASKS = [(20, 10), (45, 20), (33, 15)]


def observations_of(color):
    return np.concatenate([stack_frames(optimal_frames(JumpingTask(p, h, color)))[::3] for p, h in TASKS])


def network_of(channels):
    network = JumpingNetwork(channels, torch.Generator().manual_seed(1))
    # Biases away from zero keep rectified values off the kink, where a rounding error would flip a gradient.
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.uniform_(parameter, 0.02, 0.05, generator=torch.Generator().manual_seed(2))
    return network


def gradients(network, rows, seed=0):
    weights = torch.randn(rows.shape, generator=torch.Generator().manual_seed(seed))
    parameters = [p for name, p in network.named_parameters() if not name.startswith("policy")]
    return torch.autograd.grad((rows * weights).sum(), parameters)


@pytest.mark.parametrize("color", ["white", "red", "green"])
@pytest.mark.parametrize("augmented", [False, True])
def test_outputs_and_gradients_equal_the_plain_network(color, augmented):
    observations = observations_of(color)
    network = network_of(observations.shape[3])
    rng = np.random.default_rng(3)
    groups = [np.array([5, 0, 5, 30]), np.arange(19), np.arange(19, 38)]
    channels = observations.shape[3] // 2
    kernels = [random_kernel(rng, channels, 0) if augmented else None for _ in groups]
    plain = ImageEncoder(observations, torch.device("cpu")).represent(network, groups, kernels)
    fast = PatchEncoder(observations).represent(network, groups, kernels)
    torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(gradients(network, fast), gradients(network, plain), strict=True):
        assert float((ours - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())


@pytest.mark.parametrize("color", ["white", "red"])
def test_representing_everything_equals_the_plain_network(color):
    observations = observations_of(color)
    network = network_of(observations.shape[3])
    kernel = random_kernel(np.random.default_rng(0), observations.shape[3] // 2, 0)
    for k in (None, kernel):
        plain = ImageEncoder(observations, torch.device("cpu")).represent_all(network, k)
        fast = PatchEncoder(observations).represent_all(network, k)
        torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
        assert not fast.requires_grad


def test_index_saves_work():
    observations = observations_of("white")
    index = build_index(observations)
    assert len(index.pixels) < 0.15 * len(observations) * 15 * 15
    assert len(index.first) < 0.6 * len(observations) * 64
    assert len(index) == len(observations)


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.integers(0, 2)))
def test_distinct_rows_agree_with_numpy(rows):
    kept, numbers = distinct_rows(rows)
    np.testing.assert_array_equal(rows[kept][numbers], rows)
    assert len(kept) == len(np.unique(rows, axis=0))


def test_colliding_hashes_are_noticed(monkeypatch):
    monkeypatch.setattr("pisces.agents.imitation.patches._hash_rows", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    rows = np.array([[0, 1], [1, 0], [0, 1]], dtype=np.uint8)
    kept, numbers = distinct_rows(rows)
    np.testing.assert_array_equal(rows[kept][numbers], rows)


@given(hnp.arrays(np.int32, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.integers(-1, 9)))
def test_renumber_lists_what_is_used(numbers):
    used, compact = renumber(numbers, 10)
    assert used.tolist() == sorted({n for n in numbers.ravel().tolist() if n >= 0})
    np.testing.assert_array_equal(np.append(used, -1)[compact], numbers)


def test_groups_do_not_share_rows():
    observations = observations_of("white")
    index = build_index(observations)
    one = select(index, [np.arange(4)])
    two = select(index, [np.arange(4), np.arange(4)])
    assert len(two.first) == 2 * len(one.first)
    np.testing.assert_array_equal(two.third[:4] + len(one.second), two.third[4:])
    network = network_of(2)
    rows = represent_selection(network, index, two, (None, None))
    torch.testing.assert_close(rows[:4], rows[4:])


def test_gathers_have_the_gradients_of_indexing():
    generator = torch.Generator().manual_seed(0)
    index = np.array([[0, 2], [-1, 1], [2, 2]], dtype=np.int32)
    table = torch.randn(3, 4, generator=generator, requires_grad=True)
    padded = torch.cat([table, torch.zeros(1, 4)])
    expected = padded[torch.from_numpy(index).long()].reshape(3, 8)
    weights = torch.randn(3, 8, generator=generator)
    torch.testing.assert_close(gather_rows(table, index), expected)
    ours = torch.autograd.grad((gather_rows(table, index) * weights).sum(), table)[0]
    torch.testing.assert_close(ours, torch.autograd.grad((expected * weights).sum(), table)[0])

    slots = torch.randn(3, 2, 5, generator=generator, requires_grad=True)
    bias = torch.randn(5, generator=generator, requires_grad=True)
    zero = torch.cat([slots, torch.zeros(1, 2, 5)])
    expected = torch.relu(bias + sum(zero[torch.from_numpy(index[:, k]).long(), k] for k in range(2)))
    weights = torch.randn(3, 5, generator=generator)
    actual = sum_rows_relu(slots, bias, index)
    torch.testing.assert_close(actual, expected)
    ours = torch.autograd.grad((actual * weights).sum(), (slots, bias))
    theirs = torch.autograd.grad((expected * weights).sum(), (slots, bias))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
