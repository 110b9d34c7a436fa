"""A behavioral loss as a loss module of TorchRL, which takes a TensorDict (needs `pip install torchrl`).

python examples/torchrl_loss.py --steps 200
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import nn
from torchrl.objectives import LossModule

from pisces.losses import TargetNetwork, Transitions, loss_options, make_loss


class BehavioralLossModule(LossModule):
    """Any loss of `pisces.losses.LOSSES`; reads observation, action and the entries below "next"."""

    out_keys = ("loss_behavioral",)

    def __init__(self, encoder: nn.Module, name: str, feature_size: int, action_size: int, **options: Any) -> None:
        super().__init__()
        self.in_keys = ["observation", "action", ("next", "observation"), ("next", "reward"), ("next", "terminated")]
        self.encoder = encoder
        self.loss = make_loss(name, feature_size, action_size, **options)
        self.target = TargetNetwork(encoder, tau=0.05) if self.loss.uses_target else None

    def forward(self, tensordict: TensorDictBase) -> TensorDict:
        """Returns the loss in a TensorDict, as TorchRL's own losses do."""
        following = tensordict["next"]
        batch = Transitions(
            tensordict["observation"],
            tensordict["action"],
            following["reward"],
            following["observation"],
            following["terminated"],
        )
        return TensorDict({"loss_behavioral": self.loss(self.encoder, batch, self.target)})

    def update_target(self) -> None:
        """Moves the target encoder toward the encoder; call it after each optimizer step."""
        if self.target is not None:
            self.target.update(self.encoder)


def random_walk(count: int) -> TensorDict:
    """Transitions of a walk on a circle, which pays one at angle zero."""
    states = torch.randint(12, (count,))
    actions = torch.randint(2, (count,))
    following = (states + 2 * actions - 1) % 12
    return TensorDict(
        {
            "observation": nn.functional.one_hot(states, 12).float(),
            "action": actions,
            "next": {
                "observation": nn.functional.one_hot(following, 12).float(),
                "reward": (states == 0).float()[:, None],
                "terminated": torch.zeros(count, 1, dtype=torch.bool),
            },
        },
        batch_size=[count],
    )


def train(steps: int, name: str = "mico") -> list[float]:
    """Trains an encoder; returns the loss of each step."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
    module = BehavioralLossModule(encoder, name, 8, 2, **loss_options(name, {"discount": 0.8}))
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        loss = module(random_walk(64))["loss_behavioral"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        module.update_target()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--loss", default="mico")
    arguments = parser.parse_args()
    found = train(arguments.steps, arguments.loss)
    print(f"{arguments.loss} loss {found[0]:.4f} -> {found[-1]:.4f}")
