import torch

from pisces.agents.linear.policy import LinearPolicy
from pisces.agents.policy import Policy


def test_a_policy_acts_and_embeds():
    assert issubclass(LinearPolicy, Policy)
    assert not isinstance(torch.nn.Linear(2, 2), Policy)
