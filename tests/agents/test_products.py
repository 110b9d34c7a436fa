import pytest
import torch
from torch.nn import functional

from pisces.agents import products
from pisces.agents.products import linear


def gradients(function, inputs, weight, bias, dtype=torch.float64):
    """Output and gradients of a function of these matrices, with a different weight for every output."""
    leaves = [None if value is None else value.detach().to(dtype).requires_grad_() for value in (inputs, weight, bias)]
    output = function(*leaves)
    (output * torch.arange(1, output.numel() + 1).reshape(output.shape) / max(output.numel(), 1)).sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(7, 5, 3), (64, 3, 17), (1, 1, 1), (0, 4, 2), (130, 64, 576)])
def test_values_and_gradients_are_those_of_exact_products(rows, inputs, outputs, biased):
    torch.manual_seed(0)
    shapes = [(rows, inputs), (outputs, inputs), (outputs,)]
    matrices = [torch.randn(shape) for shape in shapes]
    if not biased:
        matrices[2] = None
    ours = gradients(linear, *matrices, dtype=torch.float32)
    exact = gradients(functional.linear, *matrices)
    for mine, expected in zip(ours, exact, strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine.double(), expected, rtol=1e-5, atol=1e-4)


def test_strided_matrices():
    torch.manual_seed(0)
    inputs = torch.randn(6, 40).t()
    for weight in (torch.randn(6, 9).t(), torch.randn(9, 13)[:, 2:8], torch.randn(18, 12)[::2, ::2]):
        torch.testing.assert_close(linear(inputs, weight), inputs @ weight.t())


def test_only_what_needs_a_gradient_gets_one():
    inputs, weight = torch.randn(4, 3), torch.randn(2, 3, requires_grad=True)
    linear(inputs, weight).sum().backward()
    torch.testing.assert_close(weight.grad, inputs.sum(dim=0).repeat(2, 1))
    assert inputs.grad is None


def test_other_types_and_builds_without_onednn_use_torch(monkeypatch):
    inputs, weight = torch.randn(4, 3), torch.randn(2, 3)
    assert linear(inputs.double(), weight.double()).dtype == torch.float64
    monkeypatch.setattr(products, "_available", lambda: False)
    monkeypatch.setattr(products._Linear, "apply", None)
    assert torch.equal(linear(inputs, weight), functional.linear(inputs, weight))
