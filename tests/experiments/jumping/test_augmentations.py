"""Prop. C.2 (arXiv:2101.05265) on the jumping MDP: what RandConv and shifts do to optimal behavior."""

import numpy as np
import pytest
import torch

from pisces.augment import apply_kernel, random_kernel
from pisces.envs.jumping import JumpingTask, optimal_frames, stack_frames
from pisces.experiments.jumping.mdp import jumping_mdp
from pisces.metrics import augmentation_invariance

DISCOUNT = 0.99


def moved(position, agent, obstacle):
    """The task with the obstacle moved, and the state that each state becomes when the agent is moved."""
    task, other = jumping_mdp(position), jumping_mdp(position + obstacle)
    index = {state: number for number, state in enumerate(other.states)}
    terminal = len(other.states)
    psi = [index.get(state._replace(x=state.x + agent), terminal) for state in task.states]
    return task, other, np.array([*psi, terminal])


@pytest.mark.parametrize("shift", [1, 5, 10])
def test_shifts_of_agent_and_obstacle_together_keep_optimal_behavior(shift):
    task, other, psi = moved(30, shift, shift)
    found = augmentation_invariance(task.mdp, other.mdp, psi, discount=DISCOUNT)
    np.testing.assert_allclose(found[task.episode], 0, atol=1e-6)


@pytest.mark.parametrize(("agent", "obstacle"), [(0, 1), (0, 5), (3, 0)])
def test_shifts_of_one_of_them_change_it_before_the_jump_only(agent, obstacle):
    task, other, psi = moved(30, agent, obstacle)
    found = augmentation_invariance(task.mdp, other.mdp, psi, discount=DISCOUNT)[task.episode]
    jump = JumpingTask(30, 10).jump_step
    assert found[: jump - agent].min() > 1
    # At the jump the agent is too early, or too late, in the other task.
    assert found[jump] >= 1


@pytest.mark.parametrize("seed", range(5))
def test_randconv_keeps_states_apart_so_the_mdp_is_the_same(seed):
    """A kernel renames observations one to one: psi is the identity on states, so d*(x, psi(x)) = 0."""
    observations = torch.from_numpy(stack_frames(optimal_frames(JumpingTask(30, 10)))).float() / 255
    frames = observations.permute(0, 3, 1, 2)
    kernel = random_kernel(np.random.default_rng(seed), passthrough_probability=0)
    filtered = apply_kernel(frames, kernel).flatten(1)
    assert torch.cdist(filtered, filtered).fill_diagonal_(1).min() > 1e-3
    task = jumping_mdp(30)
    found = augmentation_invariance(task.mdp, task.mdp, np.arange(task.mdp.n_states), discount=DISCOUNT)
    np.testing.assert_array_equal(found, 0)
