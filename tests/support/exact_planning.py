"""Optimal action values in 60 digits, independent of the package."""

from decimal import Decimal, localcontext

import numpy as np


def exact_action_values(mdp, discount, digits=60):
    """Action values [S, A] as floats of relative accuracy, and each action's relative gap to the best, by Decimal."""
    with localcontext() as context:
        context.prec = digits + 10
        rows = [
            [(int(j), Decimal(float(p))) for j, p in zip(part.indices, part.data, strict=True)]
            for part in (mdp.transitions[[row]].tocsr() for row in range(mdp.n_states * mdp.n_actions))
        ]
        rewards = [Decimal(float(reward)) for reward in mdp.rewards.ravel()]
        factor, values = Decimal(float(discount)), [Decimal(0)] * mdp.n_states
        largest = max(abs(reward) for reward in rewards) or Decimal(1)
        error = largest
        while error > largest * Decimal(10) ** -digits:
            quality = [r + factor * sum(p * values[j] for j, p in row) for r, row in zip(rewards, rows, strict=True)]
            best = [max(quality[s * mdp.n_actions : (s + 1) * mdp.n_actions]) for s in range(mdp.n_states)]
            error, values = max(abs(a - b) for a, b in zip(best, values, strict=True)), best
        gaps = [
            float((values[k // mdp.n_actions] - q) / max(abs(values[k // mdp.n_actions]), abs(q), Decimal("1e-300")))
            for k, q in enumerate(quality)
        ]
    shape = (mdp.n_states, mdp.n_actions)
    return np.array([float(q) for q in quality]).reshape(shape), np.array(gaps).reshape(shape)
