import numpy as np
import pytest
import torch

from pisces.losses import metric_l2_loss


def draw(seed, n, k=4):
    return torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_equals_its_definition():
    x, y, metric = draw(0, 4), draw(1, 5), draw(2, 4, 5).abs()
    expected = sum((float((x[i] - y[j]).norm()) - float(metric[i, j])) ** 2 for i in range(4) for j in range(5)) / 20
    assert float(metric_l2_loss(x, y, metric)) == pytest.approx(expected)


def test_gradients_equal_finite_differences():
    metric = draw(2, 4, 5).abs()
    arguments = (draw(0, 4).requires_grad_(), draw(1, 5).requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: metric_l2_loss(a, b, metric), arguments)


def test_equal_representations_have_finite_gradients():
    x = torch.ones(3, 2, requires_grad=True)
    metric_l2_loss(x, torch.ones(3, 2), torch.ones(3, 3)).backward()
    assert torch.isfinite(x.grad).all()


def test_vanishes_at_a_perfect_embedding():
    x, y = draw(0, 4), draw(1, 5)
    assert float(metric_l2_loss(x, y, torch.cdist(x, y))) == pytest.approx(0, abs=1e-12)


def test_bad_shape_is_explained():
    with pytest.raises(ValueError, match=r"metric of shape \(4, 5\)"):
        metric_l2_loss(draw(0, 4), draw(1, 5), torch.zeros(5, 4))


def test_half_precision_is_computed_in_single():
    x, y, metric = 20 + draw(0, 4, 64), 20 + draw(1, 5, 64), draw(2, 4, 5).abs()
    x, y = x.half(), y.half()
    exact = metric_l2_loss(x.double(), y.double(), metric)
    torch.testing.assert_close(metric_l2_loss(x, y, metric).double(), exact, rtol=1e-3, atol=0.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = metric_l2_loss(x.float(), y.float(), metric)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-3, atol=0.0)


@pytest.mark.parametrize(
    ("x", "y", "metric", "message"),
    [
        (torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 2), "representations"),
        (torch.ones(2), torch.ones(2), torch.ones(2, 2), "representations"),
        (torch.ones(2, 3), torch.ones(2, 3), np.ones((2, 2)), "as a tensor"),
        (np.ones((2, 3)), torch.ones(2, 3), torch.ones(2, 2), "as tensors"),
    ],
)
def test_bad_representations_are_explained(x, y, metric, message):
    with pytest.raises(ValueError, match=message):
        metric_l2_loss(x, y, metric)
