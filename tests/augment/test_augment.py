import numpy as np
import pytest
import torch

from pisces.augment import (
    apply_kernel,
    mix_colors,
    random_color_matrices,
    random_kernel,
    random_row_kernel,
    shift_frames,
)
from pisces.errors import UserError


def test_kernel_is_a_plain_sum_over_four_pixels():
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        kernel = random_kernel(rng, channels, passthrough_probability=0)
        images = torch.randn(2, 2 * channels, 5, 6, generator=torch.Generator().manual_seed(0))
        out = apply_kernel(images, kernel)
        padded = np.pad(images.numpy(), ((0, 0), (0, 0), (0, 1), (0, 1)))
        for frame in range(2):
            for o in range(channels):
                expected = sum(
                    float(kernel[o, i, dy, dx]) * padded[:, frame * channels + i, dy : dy + 5, dx : dx + 6]
                    for i in range(channels)
                    for dy in range(2)
                    for dx in range(2)
                )
                np.testing.assert_allclose(out[:, frame * channels + o], expected, atol=1e-5)


def test_row_kernel_sums_over_two_columns_and_two_colors():
    # The same draws as a 2 x 2 kernel over (column, color) of each row, by loops.
    small = random_kernel(np.random.default_rng(5), 1, passthrough_probability=0)[0, 0].numpy()
    kernel = random_row_kernel(np.random.default_rng(5), passthrough_probability=0)
    image = torch.randn(1, 6, 4, 5, generator=torch.Generator().manual_seed(0))
    out = apply_kernel(image, kernel).numpy()[0]
    padded = np.pad(image.numpy()[0].reshape(2, 3, 4, 5), ((0, 0), (0, 1), (0, 0), (0, 1)))
    for frame, c, y, x in np.ndindex(2, 3, 4, 5):
        expected = sum(small[dx, dc] * padded[frame, c + dc, y, x + dx] for dx in range(2) for dc in range(2))
        assert out[3 * frame + c, y, x] == pytest.approx(expected, abs=1e-5)
    red = torch.zeros(1, 3, 4, 5)
    red[0, 0] = 0.5
    assert float(apply_kernel(red, kernel)[0, 1:].abs().max()) == 0
    assert random_row_kernel(np.random.default_rng(0), passthrough_probability=1) is None


def test_kernels_have_glorots_variance():
    rng = np.random.default_rng(0)
    for channels, deviation in ((1, 0.5), (3, 0.2887)):
        values = np.concatenate([random_kernel(rng, channels, 0).numpy().ravel() for _ in range(2000)])
        assert values.std() == pytest.approx(deviation, rel=0.05)
        assert values.mean() == pytest.approx(0, abs=0.03)


def test_some_calls_pass_the_images_through():
    rng = np.random.default_rng(0)
    share = np.mean([random_kernel(rng) is None for _ in range(3000)])
    assert share == pytest.approx(0.1, abs=0.02)
    images = torch.ones(1, 2, 4, 4)
    assert apply_kernel(images, None) is images


def test_kernel_refuses_images_of_other_channels():
    kernel = random_kernel(np.random.default_rng(0), 3, 0)
    with pytest.raises(ValueError, match="frames"):
        apply_kernel(torch.ones(1, 2, 4, 4), kernel)


def test_shifts_repeat_the_border():
    frames = torch.randint(0, 256, (3, 6, 7, 2), dtype=torch.uint8)
    offsets = torch.tensor([[0, 2, 4], [4, 2, 1]])
    shifted = shift_frames(frames, offsets, 2)
    padded = np.pad(frames.numpy(), ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge")
    for k in range(3):
        y, x = offsets[:, k].tolist()
        assert np.array_equal(shifted[k].permute(1, 2, 0).numpy(), padded[k, y : y + 6, x : x + 7])
    assert torch.equal(
        shift_frames(frames, torch.tensor([[2], [2]]).expand(2, 3), 2), frames.permute(0, 3, 1, 2).float()
    )
    assert torch.equal(
        shift_frames(frames, torch.tensor([[1], [3]]), 2)[2], shift_frames(frames[2:], torch.tensor([[1], [3]]), 2)[0]
    )


@pytest.mark.parametrize("padding", [0, 1, 3, 9])
def test_the_fast_shift_is_that_of_indexing(padding):
    frames = torch.rand(5, 6, 4, 3)
    offsets = torch.randint(0, 2 * padding + 1, (2, 5))
    fast = shift_frames(frames, offsets, padding)
    assert torch.equal(fast, shift_frames(frames.clone().requires_grad_(), offsets, padding))
    assert fast.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64])
def test_kernel_refuses_whole_numbers(kind):
    # A kernel in the images' type would be rounded to next to nothing but zeros.
    with pytest.raises(ValueError, match="floating-point"):
        apply_kernel(torch.ones(1, 2, 5, 5, dtype=kind), torch.full((1, 1, 2, 2), 0.5))


def test_whole_numbers_are_refused_even_if_images_pass():
    with pytest.raises(UserError, match="floating-point"):
        apply_kernel(torch.zeros(1, 2, 4, 4, dtype=torch.uint8), None)
    with pytest.raises(UserError, match="expected a kernel"):
        apply_kernel(torch.zeros(1, 2, 4, 4), torch.zeros(1, 1, 3, 3))
    for probability in (2.0, float("nan")):
        with pytest.raises(UserError, match="passthrough_probability"):
            random_kernel(np.random.default_rng(0), passthrough_probability=probability)


def test_mixed_colors_are_a_matrix_product_per_pixel():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (3, 2, 4, 6), dtype=np.uint8))  # two RGB pixels in the last axis
    matrices = random_color_matrices(rng, 3, strength=0.5)
    found = mix_colors(images, matrices).numpy()
    for n, y, x, pixel in np.ndindex(3, 2, 4, 2):
        colors = images[n, y, x, 3 * pixel : 3 * pixel + 3].numpy() - 127.5
        np.testing.assert_allclose(
            found[n, y, x, 3 * pixel : 3 * pixel + 3], matrices[n].numpy() @ colors + 127.5, atol=1e-3
        )


def test_every_image_gets_its_own_mixture_of_the_given_strength():
    matrices = random_color_matrices(np.random.default_rng(0), 4000, strength=0.3) - torch.eye(3)
    assert float(matrices.std()) == pytest.approx(0.3, rel=0.02)
    assert float(matrices.mean()) == pytest.approx(0, abs=0.01)
    images = torch.full((2, 1, 1, 3), 200.0)
    torch.testing.assert_close(mix_colors(images, random_color_matrices(np.random.default_rng(0), 2, 0.0)), images)


def test_mixtures_refuse_other_shapes():
    matrices = random_color_matrices(np.random.default_rng(0), 2)
    with pytest.raises(UserError, match="RGB pixels"):
        mix_colors(torch.zeros(2, 4, 4), matrices)
    with pytest.raises(UserError, match="expected matrices"):
        mix_colors(torch.zeros(3, 4, 3), matrices)
    with pytest.raises(UserError, match="strength"):
        random_color_matrices(np.random.default_rng(0), 2, -1.0)
