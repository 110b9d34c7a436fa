"""The contrastive metric loss as a module that owns its projection."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pisces.losses.contrastive import contrastive_metric_loss


class ContrastiveMetricLoss(nn.Module):
    """Contrastive metric embeddings as an auxiliary loss on an agent's features (Eq. 4, arXiv:2101.05265).

    The module owns the projection from features to embeddings, so give its parameters to an optimizer too. With a
    policy similarity metric the embeddings are policy similarity embeddings (PSEs).

    Args:
        feature_size: width of the agent's features.
        embedding_size: width of the embeddings.
        temperature: of the softmax (1 / lambda in the paper).
        scale: of the Gaussian kernel (beta in the paper); None takes it from each pair's distances, so that half of
            the anchors have a match, and leaves out the others.
        weighted: False sets all weights of Eq. 4 to one and keeps only the choice of positives.
        symmetric: adds the loss with the states of y as anchors.
        projection: maps features [n, feature_size] to embeddings [n, k]; None for a linear layer with ReLU.
        generator: draws the initial weights of the default projection.
        match_within: anchors whose nearest state is further than this are left out; None keeps all, as in the paper,
            unless `scale` is None.
    """

    def __init__(
        self,
        feature_size: int,
        embedding_size: int = 64,
        *,
        temperature: float = 0.1,
        scale: float | None = None,
        weighted: bool = True,
        symmetric: bool = True,
        projection: nn.Module | None = None,
        generator: torch.Generator | None = None,
        match_within: float | None = None,
    ) -> None:
        super().__init__()
        self.projection = _Projection(feature_size, embedding_size, generator) if projection is None else projection
        self.temperature, self.scale = temperature, scale
        self.weighted, self.symmetric, self.match_within = weighted, symmetric, match_within

    def embed(self, features: Tensor) -> Tensor:
        """Projects features [n, feature_size] to embeddings [n, k]."""
        embeddings: Tensor = self.projection(features)
        return embeddings

    def forward(self, features_x: Tensor, features_y: Tensor, metric: Tensor) -> Tensor:
        """Returns the loss of features [n, F] and [m, F] with distances [n, m]; the anchors are the rows of x."""
        return contrastive_metric_loss(
            self.embed(features_x),
            self.embed(features_y),
            metric,
            temperature=self.temperature,
            scale=self.scale,
            weighted=self.weighted,
            symmetric=self.symmetric,
            match_within=self.match_within,
        )


class _Projection(nn.Linear):
    """A linear layer with ReLU, Glorot-uniform weights and zero biases."""

    def __init__(self, feature_size: int, embedding_size: int, generator: torch.Generator | None) -> None:
        super().__init__(feature_size, embedding_size)
        nn.init.xavier_uniform_(self.weight, generator=generator)
        nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(super().forward(features))
