import pytest
import torch

from pisces.agents.checkpoint import load_checkpoint, load_optimizer, optimizer_tensors, save_checkpoint
from pisces.errors import UserError


def network(device="cpu", width=3):
    torch.manual_seed(0)
    # The convolution's weight is not contiguous, and the last layer is never used.
    layers = [torch.nn.Conv2d(2, width, 2).to(memory_format=torch.channels_last), torch.nn.Linear(width, 2)]
    return torch.nn.ModuleList([*layers, torch.nn.Linear(2, 2)]).to(device)


def step(layers, optimizer):
    images = torch.arange(8.0).reshape(1, 2, 2, 2)
    optimizer.zero_grad()
    layers[1](layers[0](images).flatten(1)).square().sum().backward()
    optimizer.step()


def trained(fused=True):
    layers = network()
    optimizer = torch.optim.Adam(layers.parameters(), 0.1, fused=fused)
    for _ in range(3):
        step(layers, optimizer)
    return layers, optimizer


@pytest.mark.parametrize("fused", [True, False])
def test_an_optimizer_continues_from_a_checkpoint(tmp_path, fused):
    layers, optimizer = trained(fused)
    save_checkpoint(tmp_path / "x", optimizer_tensors(optimizer, "adam."), {})
    other = network()
    other.load_state_dict(layers.state_dict())
    loaded = torch.optim.Adam(other.parameters(), 0.1, fused=fused)
    load_optimizer(loaded, "adam.", load_checkpoint(tmp_path / "x")[0])
    for _ in range(3):
        step(layers, optimizer)
        step(other, loaded)
    for one, two in zip(layers.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(("option", "place"), [("fused", "meta"), ("capturable", "meta"), (None, "cpu")])
def test_tensors_move_to_the_device_of_their_parameter(option, place):
    tensors = optimizer_tensors(trained()[1], "adam.")
    assert all(value.device.type == "cpu" for value in tensors.values())
    elsewhere = network("meta")
    optimizer = torch.optim.Adam(elsewhere.parameters(), 0.1)
    for group in optimizer.param_groups:
        if option:
            group[option] = True
    load_optimizer(optimizer, "adam.", tensors)
    for parameter in elsewhere[0].parameters():
        state = optimizer.state[parameter]
        assert state["exp_avg"].device == state["exp_avg_sq"].device == parameter.device
        assert state["exp_avg"].stride() == parameter.stride()
        assert state["step"].device.type == place
    assert optimizer.state[elsewhere[2].weight] == {}


def test_the_state_of_another_network_is_refused():
    optimizer = torch.optim.Adam(network(width=5).parameters(), 0.1)
    with pytest.raises(UserError, match=r"exp_avg has shape \(3, 2, 2, 2\) for a parameter of shape \(5, 2, 2, 2\)"):
        load_optimizer(optimizer, "adam.", optimizer_tensors(trained()[1], "adam."))
