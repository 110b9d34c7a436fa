"""Approximate solver: all transports at once by entropic regularization, in torch, with bounds on the exact metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError
from pisces.metrics.costs import Cost, total_variation
from pisces.metrics.exact.chain import Chain
from pisces.metrics.exact.metrics import resolve_policies
from pisces.metrics.exact.problem import MetricResult, cost_table
from pisces.metrics.mdp.finite_mdp import FiniteMDP
from pisces.validation import check_tolerance

if TYPE_CHECKING:
    from torch import Tensor

BATCH_ENTRIES = 4_000_000
"""Cost entries that are worked on at once."""
PATIENCE = 10
"""Sweeps without a better bound after which the solver stops."""


def sinkhorn_metric(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP | None = None,
    *,
    discount: float,
    policy_x: ArrayLike | None = None,
    policy_y: ArrayLike | None = None,
    cost: Cost = total_variation,
    tolerance: float = 1e-2,
    regularization: float = 0.02,
    steps: int = 30,
    max_sweeps: int = 1000,
    device: str = "cpu",
) -> MetricResult:
    """Approximate policy similarity metric for wide supports: regularized transports, certified bounds.

    Each sweep runs `steps` Sinkhorn iterations per pair on d, rounds the coupling to a feasible one (an upper bound of
    W1) and the potentials to feasible ones (a lower bound), and moves d to the middle. The error is the residual of
    both bounds over 1 - discount, so it holds for the exact metric whatever the regularization; it is as small as the
    regularization allows, and may stay above the tolerance.

    Args:
        mdp_x: the first MDP, n states.
        mdp_y: the second MDP, m states; None for `mdp_x`.
        discount: in [0, 1).
        policy_x: policy of `mdp_x` [n, A] (or actions [n]); None for the optimal one.
        policy_y: policy of `mdp_y` [m, A]; None for the optimal one, or for `policy_x` if `mdp_y` is None.
        cost: cost of every pair of policy rows.
        tolerance: certified error at which to stop early.
        regularization: entropic regularization, relative to the largest distance; > 0.
        steps: Sinkhorn iterations per sweep.
        max_sweeps: sweeps at most.
        device: torch device.

    Returns:
        Distances [n, m] with the error that was reached.
    """
    import torch

    whole = isinstance(steps, int | np.integer) and isinstance(max_sweeps, int | np.integer)
    if not (whole and regularization > 0 and steps >= 1 and max_sweeps >= 1):
        raise UserError(f"expected regularization > 0, steps, sweeps >= 1, got {regularization}, {steps}, {max_sweeps}")
    check_tolerance(tolerance)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise UserError(f"expected a device that torch can use, got {device!r}: {reason}") from problem
    mdp_y, x, y = resolve_policies(mdp_x, mdp_y, policy_x, policy_y, discount)
    rows = [_padded(mdp.policy_chain(policy)) for mdp, policy in ((mdp_x, x), (mdp_y, y))]
    (next_x, p), (next_y, q) = [(torch.tensor(a, device=device), torch.tensor(b, device=device)) for a, b in rows]
    costs = torch.tensor(cost_table(cost, x, y), device=device)
    distance, best, since, sweeps = costs.clone(), (np.inf, costs), 0, 0
    while sweeps < max_sweeps and since < PATIENCE and best[0] > tolerance:
        sweeps += 1
        low, high = _bounds(distance, next_x, p, next_y, q, regularization, steps)
        low, high = costs + discount * low, costs + discount * high
        gap = max(float((high - distance).max()), float((distance - low).max()))
        error = (gap + 1e-12 * float(high.abs().max())) / (1 - discount)
        since = 0 if error < 0.99 * best[0] else since + 1
        best = (error, distance) if error < best[0] else best
        distance = (low + high) / 2
    return MetricResult(best[1].cpu().numpy(), best[0], sweeps)


def _padded(chain: Chain) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    lengths = np.diff(chain.pointer)
    mask = np.arange(chain.widest) < lengths[:, None]
    next_state, probability = np.zeros(mask.shape, np.int64), np.zeros(mask.shape)
    next_state[mask], probability[mask] = chain.next_state, chain.probability
    return next_state, probability


def _bounds(
    distance: Tensor, next_x: Tensor, p: Tensor, next_y: Tensor, q: Tensor, regularization: float, steps: int
) -> tuple[Tensor, Tensor]:
    import torch

    strength = max(regularization * float(distance.abs().max()), 1e-9)
    size = max(1, BATCH_ENTRIES // (p.shape[1] * q.numel()))
    parts = []
    for start in range(0, len(p), size):
        block = distance[next_x[start : start + size]][:, :, next_y].permute(0, 2, 1, 3)
        parts.append(_transport_bounds(block, p[start : start + size, None, :], q[None, :, :], strength, steps))
    low, high = zip(*parts, strict=True)
    return torch.cat(low), torch.cat(high)


def _transport_bounds(cost: Tensor, p: Tensor, q: Tensor, strength: float, steps: int) -> tuple[Tensor, Tensor]:
    # Lower and upper bound of W1 for cost [n, m, kx, ky] and marginals p [n, 1, kx], q [1, m, ky]; zeros are padding.
    import torch

    log_p, log_q = p.log()[..., :, None], q.log()[..., None, :]
    v = torch.zeros_like(cost[..., :1, :])
    for _ in range(steps):
        u = -strength * torch.logsumexp((v - cost) / strength + log_q, dim=-1, keepdim=True)
        v = -strength * torch.logsumexp((u - cost) / strength + log_p, dim=-2, keepdim=True)
    plan = torch.exp((u + v - cost) / strength + log_p + log_q)
    upper = _feasible_value(plan, cost, p[..., :, None], q[..., None, :])
    infinite = torch.tensor(torch.inf, dtype=cost.dtype, device=cost.device)
    u = torch.where(q[..., None, :] > 0, cost - v, infinite).amin(dim=-1, keepdim=True)
    v = torch.where(p[..., :, None] > 0, cost - u, infinite).amin(dim=-2, keepdim=True)
    lower = (u * p[..., :, None]).sum(dim=(-2, -1)) + (v * q[..., None, :]).sum(dim=(-2, -1))
    return lower, upper


def _feasible_value(plan: Tensor, cost: Tensor, p: Tensor, q: Tensor) -> Tensor:
    # Shrinks rows and columns that carry too much and spreads what is then missing in proportion.
    plan = plan * (p / plan.sum(dim=-1, keepdim=True).clamp_min(1e-300)).clamp_max(1.0)
    plan = plan * (q / plan.sum(dim=-2, keepdim=True).clamp_min(1e-300)).clamp_max(1.0)
    # Rounding may leave a little less than nothing missing.
    missing_p = (p - plan.sum(dim=-1, keepdim=True)).clamp_min(0.0)
    missing_q = (q - plan.sum(dim=-2, keepdim=True)).clamp_min(0.0)
    plan = plan + missing_p / missing_p.sum(dim=-2, keepdim=True).clamp_min(1e-300) * missing_q
    return (plan * cost).sum(dim=(-2, -1))
