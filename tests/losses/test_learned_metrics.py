"""Losses on transitions, minimized over a table of features, against the exact metrics that they claim to learn."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from pisces.losses import TargetNetwork, Transitions, make_loss
from pisces.metrics import FiniteMDP, bisimulation_metric, mico_distance, pi_bisimulation_metric

DISCOUNT = 0.7
CHAIN_REWARDS = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.6])


def chain(scale=1.0):
    """States that lead to the next one, whose reward is higher: distances are differences of values, on a line."""
    following = np.minimum(np.arange(6) + 1, 5)
    return FiniteMDP(np.eye(6)[following][:, None], scale * CHAIN_REWARDS[:, None])


def all_transitions(mdp, copies=1):
    """The transitions of an MDP without choices: `copies` per state, next states in proportion to their probabilities.

    The actions are the states, so that a linear model can predict every transition.
    """
    rows = mdp.transitions.toarray()
    counts = np.rint(copies * rows).astype(int)
    assert (counts.sum(axis=1) == copies).all()
    states = np.repeat(np.arange(len(rows)), copies)
    following = np.concatenate([np.repeat(np.arange(len(rows)), row) for row in counts])
    rewards = np.asarray(mdp.rewards)[:, 0][states]
    return Transitions(*(torch.from_numpy(x) for x in (states, states, rewards, following)))


def minimize(name, transitions, states, width, actions=None, steps=1000, rate=0.02, **options):
    """Minimizes a loss over a table of features; returns the table, the loss and its last value."""
    generator = torch.Generator().manual_seed(0)
    table = nn.Embedding(states, width, dtype=torch.float64)
    nn.init.normal_(table.weight, std=0.3, generator=generator)
    loss = make_loss(name, width, actions or states, generator=generator, **options).double()
    target = TargetNetwork(table, tau=0.1)
    optimizer = torch.optim.Adam([*table.parameters(), *loss.parameters()], rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(table, transitions, target if loss.uses_target else None)
        value.backward()
        optimizer.step()
        schedule.step()
        target.update(table)
    return table.weight.detach(), loss, float(value.detach())


@torch.no_grad()
def learned_distance(table, loss):
    return loss.distance(table, table).numpy()


@pytest.mark.parametrize(
    ("name", "width", "options"),
    [
        ("dbc", 1, {}),
        ("dbc", 3, {"norm": 2}),
        ("dbc-normalized", 3, {}),
    ],
)
def test_dbc_learns_pi_bisimulation_of_deterministic_dynamics(name, width, options):
    mdp = chain()
    exact = pi_bisimulation_metric(mdp, discount=DISCOUNT).distance
    options = {"discount": DISCOUNT, "deterministic": True, "hidden_size": 0, **options}
    table, loss, _ = minimize(name, all_transitions(mdp), 6, width, **options)
    learned = learned_distance(table, loss)
    np.testing.assert_allclose(learned, exact, atol=0.02 * exact.max())


@pytest.mark.parametrize("next_states", ["model", "observed"])
def test_simsr_learns_pi_bisimulation_of_deterministic_dynamics(next_states):
    mdp = chain()
    exact = pi_bisimulation_metric(mdp, discount=DISCOUNT).distance
    options = {"discount": DISCOUNT, "hidden_size": 0, "next_states": next_states, "reward_scale": 0.5}
    table, loss, _ = minimize("simsr", all_transitions(mdp), 6, 6, **options)
    learned = learned_distance(table, loss)
    np.testing.assert_allclose(learned, 0.5 * exact, atol=0.02 * exact.max())


def test_mico_learns_the_mico_distance_of_random_dynamics():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.multinomial(4, rng.dirichlet(np.ones(5))) for _ in range(5)]) / 4
    mdp = FiniteMDP(rows[:, None], rng.random((5, 1)))
    exact = mico_distance(mdp, discount=DISCOUNT).distance
    options = {"discount": DISCOUNT, "penalty": "squared", "beta": 1.0}
    table, loss, _ = minimize("mico", all_transitions(mdp, 16), 5, 5, **options)
    learned = learned_distance(table, loss)
    upper = np.triu_indices(5)
    assert spearmanr(learned[upper], exact[upper]).statistic > 0.9
    np.testing.assert_allclose(learned, exact, atol=0.05 * exact.max())


def test_deepmdp_bounds_the_bisimulation_metric():
    rng = np.random.default_rng(1)
    following, rewards = rng.integers(6, size=(6, 2)), rng.random((6, 2))
    following[3], rewards[3] = following[2], rewards[2]
    states, actions = (x.ravel() for x in np.meshgrid(np.arange(6), np.arange(2), indexing="ij"))
    parts = (states, actions, rewards.ravel(), following.ravel())
    table, loss, value = minimize(
        "deepmdp", Transitions(*(torch.from_numpy(x) for x in parts)), 6, 8, actions=2, hidden_size=0
    )
    assert value < 1e-4
    lipschitz_reward, lipschitz_transition = (
        float(torch.linalg.matrix_norm(model.layers.weight.detach(), 2).max())
        for model in (loss.reward_model, loss.transition_model)
    )
    discount = 0.2  # times the transition's Lipschitz constant, below one
    exact = bisimulation_metric(FiniteMDP(np.eye(6)[following], rewards), discount=discount).distance
    bound = lipschitz_reward / (1 - discount * lipschitz_transition) * loss.distance(table, table).numpy()
    assert discount * lipschitz_transition < 1
    assert (exact <= bound + 0.05).all()
    assert exact[0, 2] > 0.1
