"""Arrays of finite MDPs from Gymnasium's transition tables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pisces.errors import UserError

FloatArray = NDArray[np.float64]


class Entry(NamedTuple):
    """One transition of a table."""

    state: int
    """The state."""
    action: int
    """The action."""
    probability: float
    """The probability of the transition."""
    following: int
    """The next state."""
    reward: float
    """The reward."""
    ends: bool
    """Whether it ends the episode."""


def table_of(environment: Any) -> tuple[dict[Any, Any], set[int] | None]:
    """Returns the `P` dictionary of a toy-text environment and its start states, None if it does not say."""
    inner = getattr(environment, "unwrapped", environment)
    table = getattr(inner, "P", None)
    if not isinstance(table, dict) or not table:
        raise UserError(f"environment must be a toy-text environment with a P dictionary, got {environment!r}")
    initial = getattr(inner, "initial_state_distrib", None)
    if initial is None or np.shape(initial) != (len(table),):
        return table, None
    return table, {int(state) for state in np.flatnonzero(np.asarray(initial))}


def arrays_from_table(table: dict[Any, Any], starts: set[int] | None) -> tuple[scipy.sparse.csr_array, FloatArray]:
    """Returns transitions [S * A, S] and rewards [S, A] of a toy-text table; see `FiniteMDP.from_gymnasium`."""
    entries, states, actions = _entries(table)
    absorbing, extra = _terminal_states(entries, states, starts)
    rewards = np.zeros((states + extra, actions))
    rows: list[tuple[float, int, int]] = []
    for one in entries:
        if one.state in absorbing:
            continue
        rewards[one.state, one.action] += one.probability * one.reward
        target = states if one.ends and one.following not in absorbing else one.following
        rows.append((one.probability, one.state * actions + one.action, target))
    loops = [*sorted(absorbing), *[states] * extra]
    rows += [(1.0, state * actions + action, state) for state in loops for action in range(actions)]
    data, row, column = zip(*rows, strict=True)
    shape = ((states + extra) * actions, states + extra)
    return scipy.sparse.coo_array((data, (row, column)), shape=shape).tocsr(), rewards


def _terminal_states(entries: Collection[Entry], states: int, starts: set[int] | None) -> tuple[set[int], int]:
    """Returns the states that become absorbing, and whether (1 or 0) an extra terminal state is needed."""
    final = {one.following for one in entries if one.ends}
    occupied = {one.following for one in entries if not one.ends}
    if starts is None:  # any state may be a start unless nothing can happen in it
        occupied |= {one.state for one in entries if one.following != one.state or one.reward != 0}
    else:
        occupied |= starts
    return final - occupied, int(bool(final & occupied))


def _entries(table: dict[Any, Any]) -> tuple[list[Entry], int, int]:
    states = len(table)
    actions = len(table[0]) if isinstance(table.get(0), dict) else 0
    if not actions or set(table) != set(range(states)):
        raise UserError("P must have states 0, 1, ... as keys, each with a dictionary of actions 0, 1, ...")
    entries: list[Entry] = []
    for state in range(states):
        if not isinstance(table[state], dict) or set(table[state]) != set(range(actions)):
            raise UserError(f"P[{state}] must be a dictionary of {actions} actions, as P[0] is")
        for action in range(actions):
            entries += _checked(table[state][action], state, action, states)
    return entries, states, actions


def _checked(transitions: Any, state: int, action: int, states: int) -> list[Entry]:
    try:
        found = [
            Entry(state, action, float(probability), int(following), float(reward), bool(ends))
            for probability, following, reward, ends in transitions
        ]
    except (TypeError, ValueError):
        raise UserError(
            f"P[{state}][{action}] must be a list of (probability, next state, reward, terminated), got {transitions!r}"
        ) from None
    if not found:
        raise UserError(f"P[{state}][{action}] must list at least one transition, got none")
    for one in found:
        if not 0 <= one.following < states:
            raise UserError(f"next states must be in [0, {states - 1}], got {one.following} in P[{state}][{action}]")
    return [one for one in found if one.probability != 0]
