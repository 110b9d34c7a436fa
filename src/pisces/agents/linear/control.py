"""Exact, differentiable costs of linear controllers, for many systems at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pisces.envs.lqr import LinearSystem
from pisces.errors import UserError

MAX_DOUBLINGS = 40
"""Closed loops that have not died out after 2^40 steps count as unstable."""
BLOWN_UP = 1e8
"""Powers of a closed loop whose entries exceed this count as unstable."""


@dataclass(frozen=True)
class SystemBatch:
    """The systems of many seeds, as tensors; S seeds, s states, a actions."""

    dynamics: Tensor
    """A, [S, 1, s, s]."""
    control: Tensor
    """B, [S, 1, s, a]."""
    state_cost: Tensor
    """Q, [S, 1, s, s]."""
    action_cost: Tensor
    """R, [S, 1, a, a]."""

    @classmethod
    def stack(cls, systems: Sequence[LinearSystem], dtype: torch.dtype) -> SystemBatch:
        """Puts systems of equal sizes together."""
        names = ("dynamics", "control", "state_cost", "action_cost")
        stacked = {name: np.stack([getattr(system, name) for system in systems]) for name in names}
        return cls(**{name: torch.from_numpy(value).to(dtype)[:, None] for name, value in stacked.items()})

    def keep(self, indices: Tensor) -> SystemBatch:
        """The systems of some of the seeds."""
        names = ("dynamics", "control", "state_cost", "action_cost")
        return SystemBatch(**{name: getattr(self, name)[indices] for name in names})

    def costs(self, gains: Tensor) -> Tensor:
        """Expected costs of a = gain s from standard normal starts; infinite where the closed loop is unstable.

        tr(P) with P = L'PL + Q + F'RF and L = A + BF. Gradients flow into the gains; they are zero where the cost is
        infinite.

        Args:
            gains: F, [S, E, a, s], E environments per seed.

        Returns:
            Costs [S, E].
        """
        if gains.ndim != 4 or gains.shape[2:] != self.control.mT.shape[2:]:
            expected = tuple(self.control.mT.shape[2:])
            raise UserError(f"expected gains of shape [S, E, {expected[0]}, {expected[1]}], got {tuple(gains.shape)}")
        closed = self.dynamics + self.control @ gains
        constant = self.state_cost + gains.mT @ self.action_cost @ gains
        solution, stable = _Lyapunov.apply(closed.flatten(0, 1), constant.flatten(0, 1))  # type: ignore[no-untyped-call]
        traces = solution.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return torch.where(stable, traces, torch.inf).view(closed.shape[:2])


def _powers(closed: Tensor) -> tuple[list[Tensor], Tensor]:
    """L, L^2, L^4, ... until all have died out, and which members do so, [N]; powers of the others are zero."""
    stable = torch.isfinite(closed).all(-1).all(-1)
    negligible = torch.finfo(closed.dtype).eps
    powers, power = [], closed
    for _ in range(MAX_DOUBLINGS):
        largest = power.abs().amax(dim=(-2, -1))
        stable = stable & (largest < BLOWN_UP)
        if not stable.all():
            power = torch.where(stable[:, None, None], power, 0.0)
        if not (stable & (largest > negligible)).any():
            break
        powers.append(power)
        power = power @ power
    else:
        stable = stable & (power.abs().amax(dim=(-2, -1)) <= negligible)
    if not stable.all():
        powers = [torch.where(stable[:, None, None], power, 0.0) for power in powers]
    return powers, stable


def _sum(powers: Sequence[Tensor], constant: Tensor) -> Tensor:
    """Solves the equation of which `powers` holds L, L^2, L^4, ..."""
    for power in powers:
        constant = torch.baddbmm(constant, power.mT @ constant, power)
    return constant


class _Lyapunov(torch.autograd.Function):
    """Solves P = L'PL + C by doubling: k rounds sum the first 2^k terms of C + L'CL + (L^2)'C(L^2) + ...

    How many rounds are made does not change the solutions of a batch's other members: those that have died out add
    terms below the rounding error. The gradient solves one more Lyapunov equation instead of following the rounds.

    `apply` takes L and C, both [N, s, s], and returns P [N, s, s] and which members are stable, [N].
    """

    @staticmethod
    def forward(ctx: Any, closed: Tensor, constant: Tensor) -> tuple[Tensor, Tensor]:
        powers, stable = _powers(closed)
        ctx.powers = powers
        solution = _sum(powers, constant)
        ctx.save_for_backward(closed, solution, stable)
        ctx.mark_non_differentiable(stable)
        return solution, stable

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        # dP = L'(dP)L + dL'PL + L'PdL + dC, so with Z = LZL' + G: <G, dP> = <Z, dC> + <PLZ' + P'LZ, dL>.
        closed, solution, stable = ctx.saved_tensors
        mask = stable[:, None, None]
        adjoint = _sum([power.mT for power in ctx.powers], torch.where(mask, gradients[0], 0.0))
        pulled = solution @ closed @ adjoint.mT + solution.mT @ closed @ adjoint
        return torch.where(mask, pulled, 0.0), adjoint
