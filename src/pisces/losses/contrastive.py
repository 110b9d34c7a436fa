"""Contrastive losses, which pull together the embeddings of states that a metric puts close."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pisces.errors import UserError
from pisces.losses.checks import check_metric, check_positive, check_rows
from pisces.losses.numerics import cosine_similarity
from pisces.validation import check_match_within

MATCHED_SHARE, FINEST = 0.5, 0.02
"""A scale from the data matches this share of anchors, and is at least this share of the mean distance."""


def contrastive_metric_loss(
    embeddings_x: Tensor,
    embeddings_y: Tensor,
    metric: Tensor,
    *,
    temperature: float,
    scale: float | None,
    weighted: bool = True,
    symmetric: bool = False,
    match_within: float | None = None,
) -> Tensor:
    """Contrastive metric embedding loss (Eq. 4, arXiv:2101.05265).

    With similarities Gamma[i, j] = exp(-metric[i, j] / scale), cosine similarities s and p(i) = argmin_j metric[i, j]:

        loss_i = -log( Gamma[i, p] exp(s[i, p] / temperature)
                       / (Gamma[i, p] exp(s[i, p] / temperature)
                          + sum_{j != p} (1 - Gamma[i, j]) exp(s[i, j] / temperature)) )

    averaged over the anchors i, the rows of x. Of several j that are nearest in the embeddings' precision, p(i) is the
    first. Everything is computed in logarithms, so that weights neither overflow nor vanish. Embeddings of length zero
    get no gradient.

    Args:
        embeddings_x: embeddings of the anchors, [n, k].
        embeddings_y: embeddings of the states that they are compared with, [m, k].
        metric: distances, [n, m], non-negative (not checked here); no gradient flows into them.
        temperature: of the softmax, positive (1 / lambda in the paper).
        scale: of the Gaussian kernel, positive (beta in the paper). None takes it from the distances, see `data_scale`,
            and leaves out anchors whose nearest state is further than the scale.
        weighted: False sets all weights to one and keeps only the choice of positives.
        symmetric: adds the loss with the states of y as anchors.
        match_within: anchors whose nearest state is further than this are left out; None keeps all, as in the paper,
            unless `scale` is None. Without any anchor the loss is zero.

    Returns:
        The loss, a scalar.
    """
    check_rows("embeddings", embeddings_x, embeddings_y)
    check_metric(embeddings_x, embeddings_y, metric)
    check_positive("temperature", temperature)
    if scale is not None:
        check_positive("scale", scale)
    check_match_within(match_within)
    similarity = cosine_similarity(embeddings_x, embeddings_y) / temperature
    metric = metric.detach().to(similarity)
    loss = _anchor_loss(similarity, metric, scale, weighted, match_within)
    if symmetric:
        loss = loss + _anchor_loss(similarity.T, metric.T, scale, weighted, match_within)
    return loss


def simclr_loss(embeddings_x: Tensor, embeddings_y: Tensor, *, temperature: float) -> Tensor:
    """SimCLR's loss across two views (Eq. 2, arXiv:2101.05265): row i of x and row i of y are a positive pair.

    With cosine similarities s:

        loss_i = -log( exp(s[i, i] / temperature) / sum_j exp(s[i, j] / temperature) )

    averaged over the anchors i, the rows of x.

    Args:
        embeddings_x: embeddings of the anchors, [n, k].
        embeddings_y: embeddings of their positives, [n, k].
        temperature: of the softmax, positive.

    Returns:
        The loss, a scalar.
    """
    check_rows("embeddings", embeddings_x, embeddings_y)
    if embeddings_x.shape != embeddings_y.shape or len(embeddings_x) == 0:
        raise UserError(f"expected paired embeddings, got {tuple(embeddings_x.shape)} and {tuple(embeddings_y.shape)}")
    check_positive("temperature", temperature)
    similarity = cosine_similarity(embeddings_x, embeddings_y) / temperature
    return functional.cross_entropy(similarity, torch.arange(len(similarity), device=similarity.device))


def data_scale(metric: Tensor) -> Tensor:
    """Returns a scale for distances [n, m] at which half of the anchors have a match.

    It is the median distance of anchors to their nearest state, and at least 2 % of the mean distance, because exact
    matches have distance zero.
    """
    nearest = metric.min(dim=1).values.quantile(MATCHED_SHARE)
    return torch.maximum(nearest, FINEST * metric.mean()).clamp_min(torch.finfo(metric.dtype).tiny)


def _anchor_loss(
    similarity: Tensor, metric: Tensor, scale: float | Tensor | None, weighted: bool, match_within: float | None
) -> Tensor:
    positive = metric.argmin(dim=1, keepdim=True)
    logits: Tensor = similarity
    within: float | Tensor | None = match_within
    if scale is None:
        scale = data_scale(metric)
        within = scale if match_within is None else match_within
    if weighted:
        scaled = metric / scale
        # log(1 - exp(-d)); a distance of zero has weight zero, whose logarithm -inf logsumexp handles.
        weights = torch.log(-torch.expm1(-scaled))
        logits = logits + weights.scatter(1, positive, -scaled.gather(1, positive))
    losses = logits.logsumexp(dim=1) - logits.gather(1, positive).squeeze(1)
    if within is None:
        return losses.mean()
    matched = losses[metric.gather(1, positive).squeeze(1) <= within]
    return matched.sum() / max(len(matched), 1)
