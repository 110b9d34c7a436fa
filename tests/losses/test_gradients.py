import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pisces.errors import UserError
from pisces.losses import backward_with_auxiliary


def losses(seed):
    """A main and an auxiliary loss of shared parameters, and one of the auxiliary loss alone."""
    generator = torch.Generator().manual_seed(seed)
    shared = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 2), (4,))]
    own = torch.nn.Parameter(torch.randn(2, generator=generator))
    targets = [torch.randn(p.shape, generator=generator) for p in (*shared, *shared)]
    main = sum(((p - t) ** 2).sum() for p, t in zip(shared, targets[:2], strict=True))
    auxiliary = sum(((p - t) ** 3).sum() for p, t in zip(shared, targets[2:], strict=True)) + (own**2).sum()
    return main, auxiliary, shared, own


def gradients(seed):
    main, auxiliary, shared, own = losses(seed)
    of_main = torch.autograd.grad(main, shared)
    *of_auxiliary, of_own = torch.autograd.grad(auxiliary, [*shared, own])
    return [torch.cat([part.flatten() for part in parts]) for parts in (of_main, of_auxiliary)], of_own


def combined(seed, **options):
    main, auxiliary, shared, own = losses(seed)
    backward_with_auxiliary(main, auxiliary, shared, [own], **options)
    return torch.cat([p.grad.flatten() for p in shared]), own.grad


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), weight=st.floats(0.01, 10))
def test_the_sum_of_gradients(seed, weight):
    (main, auxiliary), of_own = gradients(seed)
    plain, own = combined(seed, weight=weight, relative=False)
    torch.testing.assert_close(plain, main + weight * auxiliary)
    torch.testing.assert_close(own, of_own)
    relative, _ = combined(seed, weight=weight)
    added = relative - main
    torch.testing.assert_close(added, weight * main.norm() / auxiliary.norm() * auxiliary, rtol=1e-3, atol=1e-3)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_projection_never_opposes_the_main_loss(seed):
    (main, auxiliary), _ = gradients(seed)
    total, _ = combined(seed, weight=1.0, relative=False, project=True)
    assert torch.dot(total - main, main) >= -1e-3 * main.norm() * auxiliary.norm()
    if torch.dot(main, auxiliary) >= 0:
        torch.testing.assert_close(total, main + auxiliary)


def test_without_an_auxiliary_gradient_the_main_loss_is_left_alone():
    (main, _), _ = gradients(1)
    loss, _, shared, own = losses(1)
    backward_with_auxiliary(loss, torch.zeros(()), shared, [own])
    torch.testing.assert_close(torch.cat([p.grad.flatten() for p in shared]), main)
    assert own.grad is None
    plain, _ = combined(1, weight=0.0)
    torch.testing.assert_close(plain, main)


def test_a_negative_weight_is_refused():
    with pytest.raises(UserError, match="weight must be at least 0, got -1"):
        combined(0, weight=-1)
