"""Pairs of states of different environments, with an exact metric between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pisces.errors import UserError
from pisces.metrics.mdp.finite_mdp import FiniteMDP
from pisces.pairs.matching import PairChoice, check_pairs
from pisces.pairs.trajectory_pairs import Pair, check_metric_values
from pisces.validation import as_generator, as_integers, check_count

StateMetric = Callable[[FiniteMDP, FiniteMDP], Any]
"""A function of two MDPs that returns the distances between their states, or a `MetricResult`."""


class StatePairs:
    """Samples states of two environments together with the exact metric between them.

    Where `TrajectoryPairs` compares episodes, this sampler compares any states of finite MDPs, such as those that an
    agent visits on its way off the expert's path. The metric of two MDPs is computed when it is first needed, and kept.

    Example:
        >>> from functools import partial
        >>> import numpy as np
        >>> from pisces.metrics import FiniteMDP, policy_similarity_metric
        >>> mdp = FiniteMDP(np.eye(3)[[[0, 1], [1, 2], [2, 2]]], np.array([[0, 0], [0, 1], [0, 0]]))
        >>> looks = [np.zeros((2, 4)), np.ones((2, 4))]  # of the two states that are not terminal, in two appearances
        >>> metric = partial(policy_similarity_metric, discount=0.9)
        >>> StatePairs([mdp, mdp], looks, metric=metric).sample().metric.shape
        torch.Size([2, 2])

    Args:
        mdps: the MDP of each environment; environments that differ in appearance only may share one.
        observations: for each environment the observations of its states [n, ...], n at most the number of states;
            states without an observation, such as terminal ones at the end, are never drawn.
        metric: a function of two MDPs, e.g. ``partial(policy_similarity_metric, discount=0.9)``.
        states: at most this many states of each environment are sampled per pair; None for all.
        visited: for each environment the numbers of the states to draw from, e.g. those that the agent visited, which
            `visit` changes later; None for all.
        pairs: the pairs of environments to sample from, with equal probability; None for any two different ones.
        match_within: pairs of environments are sampled in proportion to the share of their states whose nearest state
            is at most this far away, and only the best pairs of each environment; None for equal probabilities.
        observe: maps observations [n, ...] of sampled states to the tensor that a pair holds.
        seed: a seed, or a generator to sample with.
    """

    def __init__(
        self,
        mdps: Sequence[FiniteMDP],
        observations: Sequence[NDArray[Any]],
        *,
        metric: StateMetric,
        states: int | None = 64,
        visited: Sequence[ArrayLike] | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        match_within: float | None = None,
        observe: Callable[[NDArray[Any]], Tensor] = torch.from_numpy,
        seed: int | np.random.Generator = 0,
    ) -> None:
        _check(mdps, observations, states)
        self.mdps, self.observations = list(mdps), [np.asarray(values) for values in observations]
        self._metric, self._states, self._observe = metric, states, observe
        chosen = None if pairs is None else check_pairs(pairs, len(self.mdps))
        self.choice = PairChoice(len(self.mdps), chosen, match_within)
        self.generator = as_generator(seed)
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._visited = [np.arange(len(values)) for values in self.observations]
        if visited is not None and len(visited) != len(self.mdps):
            raise UserError(f"expected visited states of {len(self.mdps)} environments, got those of {len(visited)}")
        for environment, numbers in enumerate(visited or ()):
            self.visit(environment, numbers)

    def visit(self, environment: int, states: ArrayLike) -> None:
        """Sets the states that are drawn of an environment; repeated ones are drawn more often."""
        numbers = as_integers("states", states, "[n]")
        limit = len(self.observations[environment])
        if numbers.ndim != 1 or not len(numbers) or numbers.min() < 0 or numbers.max() >= limit:
            raise UserError(f"states of environment {environment} must be numbers in 0..{limit - 1}, at least one")
        self._visited[environment] = numbers

    def sample(self, generator: np.random.Generator | None = None) -> Pair:
        """Samples two environments, states of each, and the metric between them.

        Args:
            generator: to sample with; None for the sampler's own.
        """
        rng = self.generator if generator is None else generator
        x, y = self.choice.sample(rng, self._observed_metric)
        rows, columns = (self._sample_states(environment, rng) for environment in (x, y))
        distances = self.metric(x, y)[np.ix_(rows, columns)]
        seen = [self._observe(self.observations[e][numbers]) for e, numbers in ((x, rows), (y, columns))]
        return Pair(seen[0], seen[1], torch.from_numpy(distances))

    def metric(self, x: int, y: int) -> NDArray[np.float64]:
        """Returns the distances between all states of two environments, [n, m], read-only."""
        key = (id(self.mdps[x]), id(self.mdps[y]))
        if key not in self._known and key[::-1] in self._known:
            return self._known[key[::-1]].T
        if key not in self._known:
            found = self._metric(self.mdps[x], self.mdps[y])
            distances = np.asarray(getattr(found, "distance", found), dtype=np.float64)
            check_metric_values(distances, (self.mdps[x].n_states, self.mdps[y].n_states))
            distances.setflags(write=False)
            self._known[key] = distances
        return self._known[key]

    def _observed_metric(self, x: int, y: int) -> NDArray[np.float64]:
        return self.metric(x, y)[: len(self.observations[x]), : len(self.observations[y])]

    def _sample_states(self, environment: int, rng: np.random.Generator) -> NDArray[np.int64]:
        visited = self._visited[environment]
        if self._states is None or len(visited) <= self._states:
            return visited
        return np.sort(rng.choice(visited, size=self._states, replace=False))


def _check(mdps: Sequence[FiniteMDP], observations: Sequence[NDArray[Any]], states: int | None) -> None:
    if len(mdps) < 2 or len(mdps) != len(observations):
        counts = f"{len(mdps)} MDPs and observations of {len(observations)}"
        raise UserError(f"expected at least two MDPs and the observations of each, got {counts}")
    check_count("states", states)
    for number, (mdp, values) in enumerate(zip(mdps, observations, strict=True)):
        if not isinstance(mdp, FiniteMDP):
            raise UserError(f"expected FiniteMDPs, got {type(mdp).__name__}")
        if not 0 < len(values) <= mdp.n_states:
            raise UserError(
                f"environment {number} must have observations of 1 to {mdp.n_states} states, got {len(values)}"
            )
