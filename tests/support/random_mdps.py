"""Random MDPs for tests."""

import numpy as np

from pisces.metrics import FiniteMDP, optimal_transport


def random_mdp(rng, states, actions=2, support=3, decimals=None):
    """Random rows of a given support; `decimals` rounds rewards and quantises masses so that ties occur."""
    transitions = np.zeros((states, actions, states))
    for row in transitions.reshape(-1, states):
        mass = rng.dirichlet(np.ones(min(support, states)))
        if decimals is not None:
            mass = rng.multinomial(4, mass) / 4
        row[rng.choice(states, len(mass), replace=False)] = mass
    rewards = rng.normal(size=(states, actions))
    return FiniteMDP(transitions, rewards if decimals is None else np.round(rewards, decimals))


def random_policy(rng, mdp, deterministic=False):
    if deterministic:
        return np.eye(mdp.actions)[rng.integers(mdp.actions, size=mdp.states)]
    return rng.dirichlet(np.ones(mdp.actions), mdp.states)


def policy_rows(mdp, policy):
    dense = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    return np.einsum("sa,sat->st", policy, dense)


def operator(distance, cost, rows_x, rows_y, discount):
    """One application of the metric's operator, by one transport at a time."""
    lifted = [[optimal_transport(distance, p, q).value for q in rows_y] for p in rows_x]
    return cost + discount * np.array(lifted)
