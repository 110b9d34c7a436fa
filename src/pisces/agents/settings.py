"""Settings of the imitation agent; free of torch, so that the command line can show them at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from pisces.errors import UserError, unknown_name
from pisces.validation import check_kinds

Augmentation = Literal["none", "randconv"]
Auxiliary = Literal["none", "contrastive", "l2"]
Metric = Literal["psm", "bisimulation", "true"]
Coin = Literal["call", "run"]
Schedule = Literal["exponential", "cosine"]
Layout = Literal["images", "rows"]


@dataclass(frozen=True)
class ImitationSettings:
    """How the agent learns (App. F, arXiv:2101.05265). The defaults are those that all methods share."""

    learning_rate: float = 2.6e-3
    """Adam's step size at the start."""
    learning_rate_decay: float = 0.999
    """The step size is multiplied by this after each epoch."""
    schedule: Schedule = "exponential"
    """How the step size falls: by the decay alone, or also along half a cosine to zero at the end."""
    epochs: int = 2000
    """Passes over the data; each has (examples // batch size) + 1 iterations."""
    restarts: int = 1
    """Agents that are trained one after another, each for all epochs from weights of its own; the one that solves the
    most validation tasks is kept. The curve of such a run shows them all, one after another."""
    batch_size: int = 256
    """Examples of the imitation loss per iteration, half of them jumps on average."""
    l2_coefficient: float = 0.0
    """Weight of the mean over trainable tensors of half their squared norm."""
    dropout: float = 0.0
    """Share of the representation that is dropped before the policy layer."""
    augmentation: Augmentation = "none"
    """RandConv draws one kernel for the imitation batch and one for each trajectory."""
    pass_probability: float = 0.1
    """How often RandConv leaves the images unchanged."""
    coin: Coin = "call"
    """Whether that is decided at each call, or once per run for the imitation batch as in the published code."""
    kernels: Layout = "images"
    """With colours, whether RandConv's kernels reach over two rows, two columns and all colours, or over two columns
    and two neighbouring colours as in the published code, after which green can still be told from red."""
    shift: int = 0
    """Largest random shift of the training episodes in pixels, rows and columns alike; 0 for none."""
    shifted_copies: int = 24
    """Shifted copies of each training episode, all states of a copy moved alike; unused if shift is 0."""
    shift_border: int = 0
    """Pixels along the edges of the frames that stay where they are, as the screen's border does; the rest shifts."""
    evaluation_draws: int = 5
    """Kernels whose action probabilities are averaged at evaluation."""
    auxiliary: Auxiliary = "none"
    """The auxiliary loss: contrastive metric embeddings, or l2 embeddings of the representation."""
    metric: Metric = "psm"
    """The metric to embed: policy similarity, pi*-bisimulation, or the true distance to the obstacle."""
    coefficient: float = 1.0
    """Weight of the auxiliary loss (alpha)."""
    temperature: float = 1.0
    """Contrastive temperature (1 / lambda)."""
    scale: float = 0.01
    """Scale of the metric's Gaussian kernel (beta)."""
    discount: float = 0.999
    """Discount of the metric."""
    weighted: bool = True
    """Eq. 4 with its weights; False is the variant of the published launch commands."""
    symmetric: bool = True
    """Both trajectories serve as anchors, and the two losses are added."""
    network: Layout = "images"
    """With colours, whether the network sees images, or each row by itself as the published one does."""
    embedding_size: int = 64
    """Width of the embeddings."""
    evaluations: int = 20
    """Evaluations per run, evenly spaced; the last one is at the end. Several starts share them."""

    def __post_init__(self) -> None:
        check_kinds(self)
        for name, choices in (
            ("augmentation", Augmentation),
            ("auxiliary", Auxiliary),
            ("metric", Metric),
            ("coin", Coin),
            ("schedule", Schedule),
            ("kernels", Layout),
            ("network", Layout),
        ):
            if getattr(self, name) not in get_args(choices):
                raise unknown_name(name, getattr(self, name), get_args(choices))
        for name in ("learning_rate", "learning_rate_decay", "temperature", "scale"):
            if not getattr(self, name) > 0:
                raise UserError(f"expected a positive {name}, got {getattr(self, name)}")
        counts = (
            "epochs",
            "restarts",
            "batch_size",
            "shifted_copies",
            "evaluation_draws",
            "embedding_size",
            "evaluations",
        )
        for name in counts:
            if getattr(self, name) < 1:
                raise UserError(f"expected {name} of at least 1, got {getattr(self, name)}")
        for name in ("dropout", "discount"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"expected {name} in [0, 1), got {getattr(self, name)}")
        if self.kernels == "rows" and self.augmentation == "none":
            raise UserError("expected augmentation=randconv with kernels=rows, got augmentation=none")
        if not 0 <= self.shift < 30:
            raise UserError(f"expected shift in 0..29, got {self.shift}")
        if not 0 <= self.shift_border < 30:
            raise UserError(f"expected shift_border in 0..29, got {self.shift_border}")
        if not 0 <= self.pass_probability <= 1:
            raise UserError(f"expected pass_probability in [0, 1], got {self.pass_probability}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))
