"""Random MDPs for tests."""

import warnings

import numpy as np
import ot
from scipy.optimize import linprog

from pisces.metrics import FiniteMDP


def random_mdp(rng, states, actions=2, support=3, decimals=None):
    """Random rows of a given support; `decimals` rounds rewards and quantizes masses so that ties occur."""
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
        return np.eye(mdp.n_actions)[rng.integers(mdp.n_actions, size=mdp.n_states)]
    return rng.dirichlet(np.ones(mdp.n_actions), mdp.n_states)


def policy_rows(mdp, policy):
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return np.einsum("sa,sat->st", policy, dense)


def operator(distance, cost, rows_x, rows_y, discount):
    """One application of the metric's operator, by POT, which is independent of our own transport."""
    lifted = [[earth_movers(distance, p, q) for q in rows_y] for p in rows_x]
    return cost + discount * np.array(lifted)


def earth_movers(cost, p, q):
    """The value of a transport by POT."""
    # POT calls a problem infeasible when the sums of the masses differ in their last digit; the program does not.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        value, log = ot.emd2(p, q, cost, log=True)
    return value if log["warning"] is None else linear_program(cost, p, q)


def linear_program(cost, p, q):
    """The value of a transport by scipy's solver; points without mass are left out."""
    rows, columns = np.flatnonzero(p), np.flatnonzero(q)
    n, m = len(rows), len(columns)
    marginals = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))[:-1]])
    masses = np.concatenate([p[rows] / p.sum(), (q[columns] / q.sum())[:-1]])
    return linprog(cost[np.ix_(rows, columns)].ravel(), A_eq=marginals, b_eq=masses).fun
