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
        """Returns the action, [20]."""
        (vector,) = self._checked(np.asarray(observation, dtype=np.float64)[None])
        for layer in self._layers:
            vector = layer @ vector
        return np.asarray(vector, dtype=np.float64)

    def embed(self, observations: ArrayLike) -> FloatArray:
        """Returns the representations K_1 o [n, k] of observations [n, o]; of an agent with one matrix, the actions."""
        vectors = self._checked(np.asarray(observations, dtype=np.float64))
        return np.asarray(vectors @ self._layers[0].T, dtype=np.float64)

    def _checked(self, vectors: FloatArray) -> FloatArray:
        if vectors.shape[1:] != self._layers[0].shape[1:]:
            raise UserError(f"expected observations of shape {self._layers[0].shape[1:]}, got {vectors.shape[1:]}")
        return vectors
