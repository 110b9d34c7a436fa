"""Shortest ways to the goal, by search."""

from __future__ import annotations

from collections import deque

from pisces.envs.minigrid.dynamics import Dynamics, State
from pisces.errors import UserError


def steps_to_goal(dynamics: Dynamics) -> dict[State, int]:
    """Returns the least number of actions to the goal from each state that the start leads to.

    States from which the goal is out of reach are left out.
    """
    before: dict[State, list[State]] = {}
    found: dict[State, int] = {}
    waiting, known = deque([dynamics.start]), {dynamics.start}
    while waiting:
        state = waiting.popleft()
        for action in range(len(dynamics.level.family.actions)):
            outcome = dynamics.step(state, action)
            if outcome.reward > 0:
                found[state] = 1
            if not outcome.terminated:
                before.setdefault(outcome.state, []).append(state)
                if outcome.state not in known:
                    known.add(outcome.state)
                    waiting.append(outcome.state)
    ahead = deque(found)
    while ahead:
        state = ahead.popleft()
        for earlier in before.get(state, ()):
            if earlier not in found:
                found[earlier] = found[state] + 1
                ahead.append(earlier)
    return found


def optimal_action(dynamics: Dynamics, steps: dict[State, int], state: State) -> int:
    """Returns the first action that is on a shortest way to the goal.

    Args:
        dynamics: the level's rules.
        steps: what `steps_to_goal` returns.
        state: the state to act in.
    """
    if state not in steps:
        raise UserError(f"the goal is out of reach from the state {state}")
    for action in range(len(dynamics.level.family.actions)):
        outcome = dynamics.step(state, action)
        left = 0 if outcome.reward > 0 else None if outcome.terminated else steps.get(outcome.state)
        if left is not None and left == steps[state] - 1:
            return action
    raise AssertionError("a state before the goal has a neighbor that is nearer")


def expert_path(dynamics: Dynamics) -> tuple[list[State], list[int]]:
    """Returns the states on a shortest way from the start to the goal, and the action in each."""
    steps, states = steps_to_goal(dynamics), [dynamics.start]
    actions: list[int] = []
    while True:
        actions.append(optimal_action(dynamics, steps, states[-1]))
        outcome = dynamics.step(states[-1], actions[-1])
        if outcome.terminated:
            return states, actions
        states.append(outcome.state)
