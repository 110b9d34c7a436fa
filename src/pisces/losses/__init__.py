"""Losses that shape representations by behavioral similarity, in torch."""

from pisces.errors import import_extra

import_extra("torch", "torch")

from pisces.losses.behavioral import BehavioralLoss, TargetNetwork, Transitions  # noqa: E402
from pisces.losses.contrastive import contrastive_metric_loss, simclr_loss  # noqa: E402
from pisces.losses.curl import CURLLoss, curl_loss  # noqa: E402
from pisces.losses.dbc import DBCLoss, dbc_loss  # noqa: E402
from pisces.losses.deepmdp import DeepMDPLoss, deepmdp_loss  # noqa: E402
from pisces.losses.l2 import metric_l2_loss  # noqa: E402
from pisces.losses.mico import MICoLoss, mico_loss, norm_angle_distance  # noqa: E402
from pisces.losses.module import ContrastiveMetricLoss  # noqa: E402
from pisces.losses.registry import LOSSES, loss_options, make_loss, spanning_options  # noqa: E402
from pisces.losses.self_prediction import SelfPredictionLoss, cosine_prediction_loss  # noqa: E402
from pisces.losses.simsr import SimSRLoss, simsr_loss  # noqa: E402

__all__ = [
    "LOSSES",
    "BehavioralLoss",
    "CURLLoss",
    "ContrastiveMetricLoss",
    "DBCLoss",
    "DeepMDPLoss",
    "MICoLoss",
    "SelfPredictionLoss",
    "SimSRLoss",
    "TargetNetwork",
    "Transitions",
    "contrastive_metric_loss",
    "cosine_prediction_loss",
    "curl_loss",
    "dbc_loss",
    "deepmdp_loss",
    "loss_options",
    "make_loss",
    "metric_l2_loss",
    "mico_loss",
    "norm_angle_distance",
    "simclr_loss",
    "simsr_loss",
    "spanning_options",
]
