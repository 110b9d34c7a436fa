"""Several imitation agents that learn by themselves and decide together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from pisces.agents.imitation import ImitationAgent, ImitationData, Losses
from pisces.agents.networks import JumpingNetwork
from pisces.agents.settings import ImitationSettings


class ImitationEnsemble:
    """Agents with their own initial weights and draws, trained in turns; their action probabilities are averaged.

    Args:
        data: the training tasks' optimal episodes.
        settings: how each of its members learns.
        seed: the first member's seed; the others' follow from it.
        device: where to compute.
    """

    def __init__(self, data: ImitationData, settings: ImitationSettings, seed: int, device: str = "cpu") -> None:
        self.device = torch.device(device)
        seeds = member_seeds(seed, settings.members)
        self.members = [ImitationAgent(data, settings, seeds[0], device)]
        self.members += [ImitationAgent(data, settings, s, device, self.members[0].encoder) for s in seeds[1:]]

    @property
    def iteration(self) -> int:
        """Iterations so far, of all members."""
        return sum(member.iteration for member in self.members)

    @property
    def total_iterations(self) -> int:
        """Iterations of the whole training."""
        return sum(member.total_iterations for member in self.members)

    def train_iteration(self) -> Losses:
        """Takes one optimiser step with the member whose turn it is."""
        return self.members[self.iteration % len(self.members)].train_iteration()

    def deciders(self) -> list[tuple[JumpingNetwork, Tensor | None]]:
        """The networks and kernels whose action probabilities an evaluation averages."""
        return [decider for member in self.members for decider in member.deciders()]

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that training needs to go on: tensors, and numbers fit for JSON."""
        states = [member.state() for member in self.members]
        tensors = {f"{member_prefix(k)}{name}": t for k, state in enumerate(states) for name, t in state[0].items()}
        return tensors, {"iteration": self.iteration, "members": [numbers for _, numbers in states]}

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        for k, (member, own) in enumerate(zip(self.members, numbers["members"], strict=True)):
            member.restore(member_tensors(tensors, k), own)


def make_agent(
    data: ImitationData, settings: ImitationSettings, seed: int, device: str = "cpu"
) -> ImitationAgent | ImitationEnsemble:
    """An agent, or an ensemble of them if the settings say so."""
    kind = ImitationAgent if settings.members == 1 else ImitationEnsemble
    return kind(data, settings, seed, device)


def member_seeds(seed: int, members: int) -> list[int]:
    """The seeds of an ensemble's members, of which the first has the ensemble's own."""
    return [seed, *(int(np.random.SeedSequence([seed, k]).generate_state(1)[0]) for k in range(1, members))]


def member_prefix(member: int) -> str:
    """What the names of a member's tensors start with."""
    return f"member.{member}."


def member_tensors(tensors: dict[str, Tensor], member: int) -> dict[str, Tensor]:
    """One member's tensors under the names that they have in an agent of its own."""
    prefix = member_prefix(member)
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
