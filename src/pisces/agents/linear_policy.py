"""Trained linear agents, from their run folders."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pisces.errors import UserError

FloatArray = NDArray[np.float64]


class LinearPolicy:
    """A trained agent of the LQR study: a = K o, with K = K_2 K_1 or one matrix."""

    def __init__(self, tensors: Mapping[str, Tensor], folder: Path) -> None:
        self._layers = [tensors[name].double().numpy().T for name in sorted(tensors) if name.startswith("layer_")]
        if not self._layers or any(layer.ndim != 2 for layer in self._layers):
            raise UserError(f"expected the layers of a linear agent in {str(folder)!r}, got other tensors")
        if any(len(before) != after.shape[1] for before, after in pairwise(self._layers)):
            shapes = ", ".join(str(layer.shape) for layer in self._layers)
            raise UserError(f"expected layers that fit each other in {str(folder)!r}, got {shapes}")

    @property
    def matrix(self) -> FloatArray:
        """K itself, [20, observation]."""
        product = self._layers[0]
        for layer in self._layers[1:]:
            product = layer @ product
        return np.asarray(product, dtype=np.float64)

    def act(self, observation: ArrayLike) -> FloatArray:
        """The action, [20]."""
        vector = self._check(observation)
        for layer in self._layers:
            vector = layer @ vector
        return vector

    def embed(self, observation: ArrayLike) -> FloatArray:
        """The representation K_1 o; of an agent with one matrix, the action."""
        return np.asarray(self._layers[0] @ self._check(observation), dtype=np.float64)

    def _check(self, observation: ArrayLike) -> FloatArray:
        vector = np.asarray(observation, dtype=np.float64)
        if vector.shape != self._layers[0].shape[1:]:
            raise UserError(f"expected an observation of shape {self._layers[0].shape[1:]}, got {vector.shape}")
        return vector
