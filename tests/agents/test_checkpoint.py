import os

import pytest
import torch
from safetensors.torch import save_file

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


def test_every_damaged_byte_of_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, {"a": torch.arange(5.0), "b": torch.ones(2, 3)}, {"iteration": 3, "text": '"sha256":"x'})
    whole = path.read_bytes()
    tensors, numbers = load_checkpoint(path)
    assert torch.equal(tensors["a"], torch.arange(5.0))
    assert numbers == {"iteration": 3, "text": '"sha256":"x'}
    damaged = [whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :] for k in range(len(whole))]
    for content in [*damaged, *(whole[:k] for k in range(0, len(whole), 7)), whole + b"x", b""]:
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"checkpoint\.safetensors' is damaged; delete it to restart the run$"):
            load_checkpoint(path)


def test_checkpoints_of_earlier_versions_have_no_checksum(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "x", metadata={"numbers": '{"iteration": 1}'})
    tensors, numbers = load_checkpoint(tmp_path / "x")
    assert torch.equal(tensors["a"], torch.ones(2))
    assert numbers == {"iteration": 1}


def test_checkpoints_can_be_read_by_others_as_the_umask_says(tmp_path):
    before = os.umask(0o022)
    try:
        save_checkpoint(tmp_path / "x", {"a": torch.ones(2)}, {})
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_a_pipe_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(tmp_path / "x")
