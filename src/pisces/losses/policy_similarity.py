"""The loss that drops into any agent."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pisces.losses.contrastive import contrastive_metric_loss


class PolicySimilarityLoss(nn.Module):
    """Policy similarity embeddings as an auxiliary loss on an agent's features.

    It owns the non-linear projection (one ReLU layer) from features to embeddings, so give its parameters to an
    optimiser too. With a policy similarity metric the embeddings are PSEs; any other metric gives its CMEs.

    Args:
        feature_size: width of the agent's features.
        embedding_size: width of the embeddings.
        temperature: of the softmax (1 / lambda in the paper).
        scale: of the Gaussian kernel (beta in the paper).
        weighted: Eq. 4; False keeps only the choice of positives.
        symmetric: adds the loss with the roles of x and y exchanged.
        generator: draws the projection's initial weights.
        match_within: states whose nearest one is further than this are left out; None keeps all, as in the paper.
    """

    def __init__(
        self,
        feature_size: int,
        embedding_size: int = 64,
        temperature: float = 0.5,
        scale: float = 0.01,
        weighted: bool = True,
        symmetric: bool = True,
        generator: torch.Generator | None = None,
        match_within: float | None = None,
    ) -> None:
        super().__init__()
        self.projection = nn.Linear(feature_size, embedding_size)
        nn.init.xavier_uniform_(self.projection.weight, generator=generator)
        nn.init.zeros_(self.projection.bias)
        self.temperature, self.scale = temperature, scale
        self.weighted, self.symmetric, self.match_within = weighted, symmetric, match_within

    def embed(self, features: Tensor) -> Tensor:
        """Projects features [n, feature_size] to embeddings [n, embedding_size]."""
        return torch.relu(self.projection(features))

    def forward(self, features_x: Tensor, features_y: Tensor, metric: Tensor) -> Tensor:
        """Returns the loss of features [n, F] and [m, F] under distances [n, m]."""
        return contrastive_metric_loss(
            self.embed(features_x),
            self.embed(features_y),
            metric,
            self.temperature,
            self.scale,
            self.weighted,
            self.symmetric,
            self.match_within,
        )
