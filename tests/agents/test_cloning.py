import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pisces.agents.cloning.networks import CloningNetwork, as_cells, join_blocks

SIZES = st.integers(1, 9)


@settings(max_examples=20, deadline=None)
@given(height=SIZES, width=SIZES, channels=st.integers(1, 3), size=st.integers(1, 4), seed=st.integers(0, 999))
def test_a_linear_layer_of_blocks_is_a_convolution_with_that_stride(height, width, channels, size, seed):
    rng = torch.Generator().manual_seed(seed)
    images = torch.randn(2, height, width, channels, generator=rng, dtype=torch.float64)
    weight = torch.randn(5, size, size, channels, generator=rng, dtype=torch.float64)
    padded = functional.pad(images, (0, 0, 0, -width % size, 0, -height % size))
    expected = functional.conv2d(padded.permute(0, 3, 1, 2), weight.permute(0, 3, 1, 2), stride=size)
    found = join_blocks(images, size) @ weight.reshape(5, -1).T
    torch.testing.assert_close(found.permute(0, 3, 1, 2), expected)


@pytest.mark.parametrize("shape", [(36, 36, 3), (24, 24, 3), (100, 100, 3)])
def test_the_network_takes_the_frames_of_all_families(shape):
    frames = np.random.default_rng(0).integers(0, 256, (2, *shape), dtype=np.uint8)
    network = CloningNetwork(shape, 5, cell=4)
    cells = as_cells(frames, 4)
    assert cells.dtype == torch.uint8
    assert network(cells).shape == (2, 5)
    assert torch.equal(cells[1, 0, 0].reshape(4, 4, 3), torch.from_numpy(frames[1, :4, :4]))
