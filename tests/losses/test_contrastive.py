import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from pisces.losses import ContrastiveMetricLoss, contrastive, contrastive_metric_loss, metric_l2_loss, simclr_loss


def embeddings(seed, n, k=4, dtype=torch.float64):
    return torch.randn(n, k, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def metric_of(seed, n, m, dtype=torch.float64):
    values = torch.rand(n, m, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return torch.where(values < 0.3, 0.0, values)


def by_definition(x, y, metric, temperature, scale, weighted):
    """Eq. 4 written out with plain Python numbers."""
    total = 0.0
    for i in range(len(x)):
        cosine = [float(x[i] @ y[j] / (x[i].norm() * y[j].norm())) / temperature for j in range(len(y))]
        positive = min(range(len(y)), key=lambda j: float(metric[i, j]))
        gamma = [math.exp(-float(metric[i, j]) / scale) for j in range(len(y))]
        top = (gamma[positive] if weighted else 1.0) * math.exp(cosine[positive])
        rest = sum((1 - gamma[j] if weighted else 1.0) * math.exp(cosine[j]) for j in range(len(y)) if j != positive)
        total -= math.log(top / (top + rest))
    return total / len(x)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.1, 0.5, 1.0]), st.booleans())
def test_equals_equation_four(seed, n, m, temperature, weighted):
    x, y, metric = embeddings(seed, n), embeddings(seed + 1, m), metric_of(seed, n, m)
    ours = contrastive_metric_loss(x, y, metric, temperature=temperature, scale=0.3, weighted=weighted)
    assert float(ours) == pytest.approx(by_definition(x, y, metric, temperature, 0.3, weighted), rel=1e-9, abs=1e-12)


def test_symmetric_adds_the_transposed_problem():
    x, y, metric = embeddings(0, 4), embeddings(1, 6), metric_of(2, 4, 6)
    both = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.3, symmetric=True)
    one = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.3)
    other = contrastive_metric_loss(y, x, metric.T, temperature=0.5, scale=0.3)
    assert float(both) == pytest.approx(float(one + other))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients_equal_finite_differences(weighted, symmetric):
    x, y = embeddings(0, 4).requires_grad_(), embeddings(1, 5).requires_grad_()
    metric = metric_of(2, 4, 5)
    assert torch.autograd.gradcheck(
        lambda a, b: contrastive_metric_loss(
            a, b, metric, temperature=0.5, scale=0.2, weighted=weighted, symmetric=symmetric
        ),
        (x, y),
    )


@pytest.mark.parametrize("value", [0.0, 1e-12, 1.0, 1e6])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_is_finite_for_any_metric_scale_and_temperature(value, scale, temperature, dtype):
    for metric in (torch.full((3, 4), value, dtype=dtype), torch.tensor([[0.0, value, value, 0.0]] * 3, dtype=dtype)):
        x, y = embeddings(0, 3, dtype=dtype).requires_grad_(), embeddings(1, 4, dtype=dtype).requires_grad_()
        loss = contrastive_metric_loss(x, y, metric, temperature=temperature, scale=scale, symmetric=True)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(x.grad).all()
        assert torch.isfinite(y.grad).all()


def test_zero_embeddings_have_finite_gradients():
    x, y = torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 3, requires_grad=True)
    contrastive_metric_loss(x, y, torch.eye(2), temperature=0.5, scale=0.1).backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("short", [0.0, 1e-30, 1e-13])
@pytest.mark.parametrize("symmetric", [True, False])
def test_embeddings_without_a_direction_get_no_gradient_and_do_not_change_others(monkeypatch, short, symmetric):
    def loss_and_gradients():
        x, y, metric = embeddings(0, 4), embeddings(1, 5), metric_of(2, 4, 5)
        x[2], y[1] = short, short
        x.requires_grad_()
        y.requires_grad_()
        loss = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.1, symmetric=symmetric)
        loss.backward()
        return loss, x.grad, y.grad

    loss, x, y = loss_and_gradients()
    assert x[2].abs().max() == y[1].abs().max() == 0
    assert max(x.abs().max(), y.abs().max()) < 10
    normalize = partial(torch.nn.functional.normalize, dim=1)
    monkeypatch.setattr("pisces.losses.numerics.directions", normalize)
    plain, plain_x, plain_y = loss_and_gradients()
    assert plain_x[2].abs().max() > 1e9
    assert torch.equal(loss, plain)
    assert torch.equal(x[[0, 1, 3]], plain_x[[0, 1, 3]])
    assert torch.equal(y[[0, 2, 3, 4]], plain_y[[0, 2, 3, 4]])


@pytest.mark.parametrize("loss", ["contrastive", "simclr", "l2"])
def test_no_value_is_read_from_the_device(loss):
    """Reading one would wait for the device; tensors without storage raise if anyone tries."""
    with FakeTensorMode():
        x, y = torch.ones(3, 4, requires_grad=True), torch.ones(3, 4, requires_grad=True)
        metric = torch.ones(3, 3)
        with pytest.raises(DataDependentOutputException):
            float(metric.min())
        if loss == "contrastive":
            contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.1, symmetric=True).backward()
        elif loss == "simclr":
            simclr_loss(x, y, temperature=0.5).backward()
        else:
            metric_l2_loss(x, y, metric).backward()
        assert x.grad.shape == x.shape


def test_states_at_distance_zero_are_no_negatives():
    x, y = embeddings(0, 1), embeddings(1, 3)
    metric = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    without = contrastive_metric_loss(x, y[[0, 2]], metric[:, [0, 2]], temperature=0.5, scale=0.1)
    assert float(contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.1)) == pytest.approx(float(without))


def test_no_gradient_flows_into_the_metric():
    x, y = embeddings(0, 2).requires_grad_(), embeddings(1, 2)
    metric = torch.rand(2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.1).backward()
    assert metric.grad is None


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_simclr_equals_equation_two(seed, n):
    x, y = embeddings(seed, n), embeddings(seed + 1, n)
    total = 0.0
    for i in range(n):
        logits = [float(x[i] @ y[j] / (x[i].norm() * y[j].norm())) / 0.5 for j in range(n)]
        total -= math.log(math.exp(logits[i]) / sum(math.exp(value) for value in logits))
    assert float(simclr_loss(x, y, temperature=0.5)) == pytest.approx(total / n, rel=1e-9)


def test_simclr_is_the_unweighted_loss_of_a_diagonal_metric():
    x, y = embeddings(0, 5), embeddings(1, 5)
    metric = 1 - torch.eye(5, dtype=torch.float64)
    unweighted = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=1.0, weighted=False)
    assert float(simclr_loss(x, y, temperature=0.5)) == pytest.approx(float(unweighted))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": torch.zeros(2, 2)}, r"metric of shape \(2, 3\)"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"embeddings_x": torch.zeros(2, 5)}, "embeddings"),
    ],
)
def test_bad_input_is_explained(change, message):
    arguments = {
        "embeddings_x": torch.ones(2, 4),
        "embeddings_y": torch.ones(3, 4),
        "metric": torch.zeros(2, 3),
        "temperature": 0.5,
        "scale": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        contrastive_metric_loss(**{**arguments, **change})


def test_module_projects_and_learns_to_align_positives():
    generator = torch.Generator().manual_seed(0)
    module = ContrastiveMetricLoss(8, 64, temperature=0.5, scale=0.1, generator=generator)
    x, y = torch.randn(6, 8, generator=generator), torch.randn(6, 8, generator=generator)
    metric = 1 - torch.eye(6)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    losses = []
    for _ in range(300):
        loss = module(x, y, metric)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    cosine = torch.nn.functional.cosine_similarity(module.embed(x)[:, None], module.embed(y)[None], dim=-1)
    assert (cosine.argmax(dim=1) == torch.arange(6)).all()


def test_module_draws_its_weights_from_the_generator():
    weights = [
        ContrastiveMetricLoss(8, generator=torch.Generator().manual_seed(seed)).projection.weight for seed in (0, 0, 1)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert np.isclose(float(weights[0].detach().abs().max()), math.sqrt(6 / 72), rtol=0.05)


def test_a_projection_of_ones_own_replaces_the_default():
    projection = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    module = ContrastiveMetricLoss(8, projection=projection)
    features = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module.embed(features), projection(features))
    assert {name.split(".")[0] for name, _ in module.named_parameters()} == {"projection"}
    module(features, features, 1 - torch.eye(4)).backward()
    assert projection[0].weight.grad.abs().sum() > 0


def test_anchors_without_a_match_are_left_out():
    x, y = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.eye(2, 4)
    metric = torch.tensor([[0.0, 2.0], [3.0, 1.0], [5.0, 4.0]])
    matched = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=1.0, match_within=1.5)
    torch.testing.assert_close(matched, contrastive_metric_loss(x[:2], y, metric[:2], temperature=0.5, scale=1.0))
    both = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=1.0, symmetric=True, match_within=10.0)
    torch.testing.assert_close(both, contrastive_metric_loss(x, y, metric, temperature=0.5, scale=1.0, symmetric=True))
    embeddings = x.clone().requires_grad_()
    nothing = contrastive_metric_loss(
        embeddings, y, metric + 9, temperature=0.5, scale=1.0, symmetric=True, match_within=1.5
    )
    nothing.backward()
    assert nothing.item() == 0
    assert embeddings.grad.abs().sum() == 0


def test_half_precision_does_not_overflow():
    metric = torch.full((3, 4), 1000.0, dtype=torch.float64)
    metric[0, 0] = 0
    torch.manual_seed(0)
    x, y = torch.randn(3, 8), torch.randn(4, 8)
    exact = contrastive_metric_loss(x, y, metric, temperature=0.5, scale=0.01)
    for kind in (torch.float16, torch.bfloat16):
        half = contrastive_metric_loss(x.to(kind), y.to(kind), metric, temperature=0.5, scale=0.01)
        assert torch.isfinite(half)
        torch.testing.assert_close(half, exact, rtol=1e-2, atol=0.0)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_dead_features_in_half_precision_have_finite_gradients(kind):
    features = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    features[2] = 0
    features.requires_grad_()
    module, metric = ContrastiveMetricLoss(16, 8), metric_of(1, 5, 5)
    with torch.autocast("cpu", dtype=kind):
        loss = module(features, features, metric)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(features.grad).all()
    x = embeddings(0, 3, dtype=torch.float32).to(kind)
    assert float(simclr_loss(x, x, temperature=1e-5)) == 0.0


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2), (0, 2)])
def test_simclr_explains_bad_shapes(shape):
    with pytest.raises(ValueError, match="embeddings"):
        simclr_loss(torch.ones(shape), torch.ones(shape), temperature=0.5)


def test_a_metric_that_is_no_tensor_is_explained():
    with pytest.raises(ValueError, match="metric as a tensor"):
        contrastive_metric_loss(torch.ones(2, 3), torch.ones(2, 3), np.ones((2, 2)), temperature=0.5, scale=0.1)


@pytest.mark.parametrize("match_within", [-1.0, math.nan, "x"])
def test_a_distance_that_nothing_matches_within_is_refused(match_within):
    with pytest.raises(ValueError, match="match_within must be at least 0"):
        contrastive_metric_loss(
            embeddings(0, 3),
            embeddings(1, 3),
            metric_of(0, 3, 3),
            temperature=0.5,
            scale=1.0,
            match_within=match_within,
        )


def test_embeddings_of_two_precisions_are_compared_in_the_wider():
    x, y, metric = embeddings(0, 3), embeddings(1, 4), metric_of(0, 3, 4)
    narrow = x.float()
    expected = contrastive_metric_loss(narrow.double(), y, metric, temperature=0.5, scale=0.3)
    assert contrastive_metric_loss(narrow, y, metric, temperature=0.5, scale=0.3) == expected
    assert metric_l2_loss(narrow, y, metric) == metric_l2_loss(narrow.double(), y, metric)
    assert simclr_loss(narrow, y[:3], temperature=0.5) == simclr_loss(narrow.double(), y[:3], temperature=0.5)


def test_arrays_are_not_embeddings():
    for loss in (
        lambda a, b: simclr_loss(a, b, temperature=0.5),
        lambda a, b: contrastive_metric_loss(a, b, metric_of(0, 3, 3), temperature=1, scale=1),
    ):
        with pytest.raises(ValueError, match="as tensors, got ndarray"):
            loss(np.ones((3, 2)), torch.ones(3, 2))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6), st.floats(0.01, 100))
def test_a_scale_from_the_data_matches_half_of_the_anchors_in_any_unit(seed, n, m, unit):
    x, y, metric = embeddings(seed, n), embeddings(seed + 1, m), metric_of(seed + 2, n, m)
    nearest = metric.min(dim=1).values.numpy()
    scale = max(float(np.median(nearest)), 0.02 * float(metric.mean()))
    assume(scale > 0)
    kept = nearest <= scale
    assert kept.mean() >= 0.5
    expected = by_definition(x[kept], y, metric[kept], 0.3, scale, True)
    for factor in (1.0, unit):
        found = contrastive_metric_loss(x, y, factor * metric, temperature=0.3, scale=None)
        assert float(found) == pytest.approx(float(expected), rel=1e-9)
    everything = contrastive_metric_loss(x, y, metric, temperature=0.3, scale=None, match_within=1e9)
    assert float(everything) == pytest.approx(float(by_definition(x, y, metric, 0.3, scale, True)), rel=1e-9)


def test_a_scale_from_exact_matches_is_a_share_of_the_mean_distance():
    metric = torch.tensor([[0.0, 4.0], [4.0, 0.0], [2.0, 2.0]], dtype=torch.float64)
    assert float(contrastive.data_scale(metric)) == pytest.approx(0.02 * 2.0)
    zero = torch.zeros(2, 2, dtype=torch.float64)
    assert torch.isfinite(
        contrastive_metric_loss(embeddings(0, 2), embeddings(1, 2), zero, temperature=0.1, scale=None)
    )
