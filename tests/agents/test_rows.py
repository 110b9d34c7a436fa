"""The published network for coloured frames, against convolutions over columns and colours as the code has them."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pisces.agents.loading import load
from pisces.agents.rows import RowEncoder, RowNetwork
from pisces.augment import apply_kernel, random_kernel, random_row_kernel
from pisces.envs.jumping import JumpingTask, optimal_halves, stack_frames
from pisces.experiments.jumping import make_config
from pisces.experiments.jumping_run import run


def observations():
    tasks = [JumpingTask(20, 10, "red"), JumpingTask(45, 20, "green")]
    return np.concatenate([stack_frames(optimal_halves(task))[::3] for task in tasks])


def images_of(halves):
    return torch.from_numpy(halves).permute(0, 3, 1, 2).float() * 0.5


def network_of():
    network = RowNetwork(torch.Generator().manual_seed(1))
    # Biases away from zero keep rectified values off the kink, where a rounding error would flip a gradient.
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.uniform_(parameter, 0.02, 0.05, generator=torch.Generator().manual_seed(2))
    return network


def same_convolution(images, weight, bias, stride):
    """A convolution with TensorFlow's padding: as much as it takes, the odd pixel behind."""
    padding = []
    for size, kernel in ((images.shape[3], weight.shape[3]), (images.shape[2], weight.shape[2])):
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        padding += [total // 2, total - total // 2]
    return torch.relu(functional.conv2d(functional.pad(images, padding), weight, bias, stride=stride))


def square_kernel(used, colors, before):
    """The published square kernel around the part that meets `colors` colours; the rest meets zeros only."""
    out, channels, columns = used.shape
    kernel = torch.randn(out, channels // colors, columns, columns, generator=torch.Generator().manual_seed(0))
    kernel[..., before : before + colors] = used.reshape(out, -1, colors, columns).transpose(2, 3)
    return kernel


def test_network_is_the_published_one():
    network, images = network_of(), images_of(observations()[:7])
    rows = images.reshape(7, 2, 3, 60, 60).permute(0, 3, 1, 4, 2).flatten(0, 1)  # [rows, frames, columns, colours]
    features = same_convolution(rows, square_kernel(network.conv1.weight.detach(), 3, 2), network.conv1.bias, 4)
    features = same_convolution(features, square_kernel(network.conv2.weight.detach(), 1, 1), network.conv2.bias, 2)
    features = same_convolution(features, square_kernel(network.conv3.weight.detach(), 1, 1), network.conv3.bias, 1)
    assert features.shape == (7 * 60, 64, 8, 1)
    flat = features.permute(0, 2, 3, 1).reshape(7, -1)
    expected = torch.relu(flat @ network.hidden_weight.reshape(60 * 8 * 64, 256) + network.hidden_bias)
    torch.testing.assert_close(network.represent(images), expected, atol=1e-5, rtol=1e-5)


def test_initial_weights_have_the_published_range():
    weights = {name: p.detach() for name, p in RowNetwork(torch.Generator().manual_seed(0)).named_parameters()}
    fans = {"conv1.weight": 64 * 34, "conv2.weight": 16 * 96, "conv3.weight": 9 * 128, "hidden_weight": 30720 + 256}
    for name, fan in fans.items():
        limit = (6 / fan) ** 0.5
        assert 0.99 * limit < float(weights[name].abs().max()) <= limit
    assert all(float(value.abs().max()) == 0 for name, value in weights.items() if name.endswith("bias"))


@pytest.mark.parametrize("draw", [None, lambda rng: random_kernel(rng, 3, 0), lambda rng: random_row_kernel(rng, 0)])
def test_encoder_gives_the_networks_numbers(draw):
    halves, network = observations(), network_of()
    encoder, rng = RowEncoder(halves), np.random.default_rng(3)
    groups = [np.array([5, 0, 5, 30]), np.arange(19), np.arange(19, 38)]
    kernels = [draw(rng) if draw else None for _ in groups]
    parts = [apply_kernel(images_of(halves[group]), kernel) for group, kernel in zip(groups, kernels, strict=True)]
    plain = network.represent(torch.cat(parts))
    fast = encoder.represent(network, groups, kernels)
    torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
    weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(0))
    parameters = [p for name, p in network.named_parameters() if not name.startswith("policy")]
    ours, theirs = (torch.autograd.grad((rows * weights).sum(), parameters) for rows in (fast, plain))
    for a, b in zip(ours, theirs, strict=True):
        assert float((a - b).abs().max()) <= 1e-5 * float(b.abs().max())
    everything = encoder.represent_all(network, kernels[0])
    torch.testing.assert_close(everything, network.represent(apply_kernel(images_of(halves), kernels[0])))
    assert not everything.requires_grad


def test_a_run_with_rows_learns_stops_and_loads(tmp_path):
    changes = {"network": "rows", "kernels": "rows", "epochs": 1, "evaluations": 1, "evaluation_draws": 1}
    config = make_config("randconv+pse", preset="smoke", colors=True, changes=changes)
    policy = load(run(config, tmp_path).path)
    assert isinstance(policy.network, RowNetwork)
    frames = np.zeros((2, 60, 60, 3), dtype=np.float32)
    assert policy.probabilities(frames).sum() == pytest.approx(1)
    assert policy.embed(frames).shape == (64,)


def test_rows_need_colours():
    for name in ("network", "kernels"):
        with pytest.raises(ValueError, match="without colours"):
            make_config("randconv", changes={name: "rows"})
