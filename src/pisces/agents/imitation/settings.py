"""Settings of the imitation agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pisces.errors import UserError
from pisces.validation import Count, Discount, Fraction, Interval, NonNegative, Positive, Probability, check_settings

Augmentation = Literal["none", "randconv"]
TransitionLoss = Literal["dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr", "curl"]
Auxiliary = Literal["none", "contrastive", "l2", "dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr", "curl"]
Metric = Literal["psm", "psm-mdp", "pi-bisimulation", "pi-bisimulation-end", "true"]
Per = Literal["call", "run"]
Schedule = Literal["exponential", "cosine"]
Layout = Literal["images", "rows"]


@dataclass(frozen=True)
class ImitationSettings:
    """How the agent learns (App. F, arXiv:2101.05265). The defaults are those that all methods share."""

    learning_rate: Positive = 2.6e-3
    """Learning rate of Adam at the start."""
    learning_rate_decay: Fraction = 0.999
    """Factor of the learning rate after each epoch."""
    schedule: Schedule = "exponential"
    """Learning rate schedule: the decay alone, or also half a cosine to zero at the end."""
    epochs: Count = 2000
    """Passes over the data; each has (examples // batch size) + 1 iterations."""
    restarts: Count = 1
    """Agents trained one after another, each for all epochs from its own initial weights; the one that solves the most
    validation tasks is kept. The learning curve of the run shows all of them, one after another."""
    batch_size: Count = 256
    """Examples of the imitation loss per iteration, half of them jumps on average."""
    l2_coefficient: NonNegative = 0.0
    """Weight of the mean over trainable tensors of half their squared norm."""
    dropout: Discount = 0.0
    """Share of the representation that is dropped before the policy layer."""
    augmentation: Augmentation = "none"
    """Data augmentation: none, or RandConv with one kernel for the imitation batch and one for each trajectory."""
    passthrough_probability: Probability = 0.1
    """Probability that RandConv leaves the images unchanged."""
    passthrough_per: Per = "call"
    """Whether RandConv draws the pass-through at each call, or once per run for the imitation batch as in the published
    code."""
    kernels: Layout = "images"
    """With colors, whether RandConv's kernels reach over two rows, two columns and all colors, or over two columns
    and two neighboring colors as in the published code, after which green can still be distinguished from red."""
    shift: Annotated[int, Interval(0, 29)] = 0
    """Largest random shift of the training episodes in pixels, rows and columns alike; 0 for none."""
    shifted_copies: Count = 24
    """Shifted copies of each training episode, all states of a copy moved alike; unused if shift is 0."""
    shift_border: Annotated[int, Interval(0, 29)] = 0
    """Pixels along the edges of the frames that stay where they are, as the screen's border does; the rest shifts."""
    evaluation_draws: Count = 5
    """Kernels whose action probabilities are averaged at evaluation."""
    auxiliary: Auxiliary = "none"
    """The auxiliary loss: contrastive metric embeddings, l2 embeddings of the representation, or a loss on the
    transitions of the optimal episodes."""
    metric: Metric = "psm"
    """The metric to embed: policy similarity along the optimal episodes (psm) or on the whole MDPs, which differs for
    suboptimal policies (psm-mdp); pi*-bisimulation, whose last state repeats its reward (pi-bisimulation, as App. I.1)
    or is followed by an end that pays nothing (pi-bisimulation-end); or the true distance to the obstacle."""
    reward_scale: Positive = 0.01
    """Factor of the rewards in losses on transitions."""
    tau: Fraction = 0.01
    """Share of the network that enters the target network of a loss on transitions, at every iteration."""
    coefficient: NonNegative = 1.0
    """Weight of the auxiliary loss (alpha)."""
    temperature: Positive = 1.0
    """Contrastive temperature (1 / lambda)."""
    scale: Positive = 0.01
    """Scale of the Gaussian kernel of the metric (beta)."""
    discount: Discount = 0.999
    """Discount of the metric."""
    weighted: bool = True
    """Whether the contrastive loss uses the weights of Eq. 4; the published launch commands do not."""
    symmetric: bool = True
    """Whether both trajectories serve as anchors and the two contrastive losses are added."""
    network: Layout = "images"
    """With colors, whether the network sees images, or each row by itself as the published one does."""
    embedding_size: Count = 64
    """Width of the embeddings."""
    evaluations: Count = 20
    """Evaluations per run, evenly spaced; the last one is at the end. Restarts share them."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.kernels == "rows" and self.augmentation == "none":
            raise UserError("kernels=rows requires augmentation=randconv")

    def rate_at(self, iteration: int, iterations_per_epoch: int) -> float:
        """The learning rate of an iteration since the last start."""
        rate = self.learning_rate * self.learning_rate_decay ** (iteration // iterations_per_epoch)
        if self.schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * iteration / (self.epochs * iterations_per_epoch)))
        return rate
