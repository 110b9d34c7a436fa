"""The published network for colored frames, against convolutions over columns and colors as the code has them."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pisces.agents.imitation.encoders import ImageEncoder, make_encoder
from pisces.agents.imitation.kernels import draw_kernel, evaluation_kernels
from pisces.agents.imitation.row_network import RowEncoder, RowNetwork
from pisces.agents.imitation.settings import ImitationSettings
from pisces.augment import apply_kernel, random_kernel, random_row_kernel
from pisces.envs.jumping import JumpingTask, optimal_frames, stack_frames
from pisces.experiments import load
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.jumping.experiment import Jumping
from pisces.runs.job import Job


def observations():
    tasks = [JumpingTask(20, 10, "red"), JumpingTask(45, 20, "green")]
    return np.concatenate([stack_frames(optimal_frames(task))[::3] for task in tasks])


def images_of(stored):
    return torch.from_numpy(stored).permute(0, 3, 1, 2).float() * 0.5


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
    """The published square kernel around the part that meets `colors` colors; the rest meets zeros only."""
    out, channels, columns = used.shape
    kernel = torch.randn(out, channels // colors, columns, columns, generator=torch.Generator().manual_seed(0))
    kernel[..., before : before + colors] = used.reshape(out, -1, colors, columns).transpose(2, 3)
    return kernel


def test_network_is_the_published_one():
    network, images = network_of(), images_of(observations()[:7])
    rows = images.reshape(7, 2, 3, 60, 60).permute(0, 3, 1, 4, 2).flatten(0, 1)  # [rows, frames, columns, colors]
    features = same_convolution(rows, square_kernel(network.conv1.weight.detach(), 3, 2), network.conv1.bias, 4)
    features = same_convolution(features, square_kernel(network.conv2.weight.detach(), 1, 1), network.conv2.bias, 2)
    features = same_convolution(features, square_kernel(network.conv3.weight.detach(), 1, 1), network.conv3.bias, 1)
    assert features.shape == (7 * 60, 64, 8, 1)
    flat = features.permute(0, 2, 3, 1).reshape(7, -1)
    expected = torch.relu(flat @ network.hidden_weight.reshape(60 * 8 * 64, 256) + network.hidden_bias)
    torch.testing.assert_close(network.represent(images), expected, atol=1e-5, rtol=1e-5)


def test_initial_weights_have_the_published_range():
    weights = {name: p.detach() for name, p in RowNetwork(torch.Generator().manual_seed(0)).named_parameters()}
    fans = {
        "conv1.weight": 64 * 34,
        "conv2.weight": 16 * 96,
        "conv3.weight": 9 * 128,
        "hidden_weight": 30720 + 256,
        "policy.weight": 258,
    }
    for name, fan in fans.items():
        limit = (6 / fan) ** 0.5
        assert 0.98 * limit < float(weights[name].abs().max()) <= limit
    assert all(float(value.abs().max()) == 0 for name, value in weights.items() if name.endswith("bias"))


KERNELS = {
    "none": lambda rng: None,
    "images": lambda rng: random_kernel(rng, 3, 0),
    "rows": lambda rng: random_row_kernel(rng, 0),
}


@pytest.mark.parametrize("kind", KERNELS)
def test_encoder_gives_the_networks_numbers(kind):
    stored, network, rng = observations(), network_of(), np.random.default_rng(3)
    groups = [np.array([5, 0, 5, 30]), np.arange(19), np.arange(19, 38)]
    kernels = [KERNELS[kind](rng) for _ in groups]
    plain = ImageEncoder(stored, torch.device("cpu")).represent(network, groups, kernels)
    fast = make_encoder(stored, torch.device("cpu")).represent(network, groups, kernels)
    torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
    weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(0))
    parameters = [p for name, p in network.named_parameters() if not name.startswith("policy")]
    ours, theirs = (torch.autograd.grad((rows * weights).sum(), parameters) for rows in (fast, plain))
    for a, b in zip(ours, theirs, strict=True):
        assert float((a - b).abs().max()) <= 1e-5 * float(b.abs().max())


def test_representing_everything_in_chunks(monkeypatch):
    monkeypatch.setattr("pisces.agents.imitation.row_network.CHUNK", 7)
    stored, network, kernel = observations(), network_of(), random_kernel(np.random.default_rng(0), 3, 0)
    everything = RowEncoder(stored).represent_all(network, kernel)
    torch.testing.assert_close(everything, network.represent(apply_kernel(images_of(stored), kernel)))
    assert not everything.requires_grad


def test_rows_of_gray_frames_are_refused():
    gray = stack_frames(optimal_frames(JumpingTask(20, 10)))
    with pytest.raises(ValueError, match="RGB"):
        RowEncoder(gray)


@pytest.mark.parametrize("kernels", ["rows", "images"])
def test_kernels_are_drawn_as_the_settings_say(kernels):
    settings = ImitationSettings(augmentation="randconv", kernels=kernels, passthrough_probability=0)
    drawn = [draw_kernel(np.random.default_rng(0), settings, 3, 0), *evaluation_kernels(settings, 0, 0, 3)]
    beyond = [float(kernel[:, :, 1].abs().max()) for kernel in drawn]
    red_in_green = [float(kernel[1, 0].abs().max()) for kernel in drawn]
    assert all(value == 0 for value in (*beyond, *red_in_green)) == (kernels == "rows")


def test_a_run_with_rows_is_loaded_and_acts_as_it_was_evaluated(tmp_path):
    changes = {"network": "rows", "kernels": "rows", "epochs": 2, "evaluations": 1, "evaluation_draws": 2}
    config = JumpingConfig.make("randconv+pse", "smoke", colors=True, changes=changes)
    folder = Job(Jumping(), config).run(tmp_path)
    policy, result = load(folder.path), folder.read_result()
    assert isinstance(policy.network, RowNetwork)
    for number in (0, 300, 571):
        position, height, color = result["tasks"][number]
        stacked = stack_frames(optimal_frames(JumpingTask(position, height, color)))[:5]
        frames = images_of(stacked).reshape(5, 2, 3, 60, 60).permute(0, 1, 3, 4, 2).numpy()
        assert "".join(str(policy.act(pair)) for pair in frames) == result["actions"][number][:5]
    assert policy.embed(frames[:1]).shape == (1, 64)


def test_rows_need_colors_and_kernels_need_randconv():
    for name in ("network", "kernels"):
        with pytest.raises(ValueError, match=f"{name}=rows requires --colors"):
            JumpingConfig.make("randconv", "paper", changes={name: "rows"})
    with pytest.raises(ValueError, match="augmentation=randconv"):
        JumpingConfig.make("pse", "paper", colors=True, changes={"kernels": "rows"})
    with pytest.raises(ValueError, match="row"):
        JumpingConfig.make("pse", "paper", colors=True, changes={"network": "row"})
