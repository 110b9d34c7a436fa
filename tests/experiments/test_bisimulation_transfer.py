import subprocess
import sys

import numpy as np
import pytest

from pisces.envs.grids import split_tasks
from pisces.envs.jumping import JumpingEnv, JumpingTask, optimal_actions, optimal_rewards
from pisces.experiments.bisimulation_transfer import TransferConfig, jumping_mdp, run, transferred_actions
from pisces.metrics import optimal_policy, value_iteration


@pytest.mark.parametrize("position", [20, 33, 45])
@pytest.mark.parametrize("seed", range(5))
def test_the_mdp_steps_as_the_environment(position, seed):
    rng = np.random.default_rng(seed)
    task = jumping_mdp(position)
    environment = JumpingEnv(position, 10)
    environment.reset()
    actions = rng.random(56) < 0.1 if seed else optimal_actions(JumpingTask(position, 10))
    state, terminal, done = 0, task.mdp.states - 1, False
    for action in actions.astype(int):
        if done:
            break
        _, reward, done, _, _ = environment.step(action)
        row = 2 * state + action
        assert task.mdp.rewards[state, action] == reward
        state = int(task.mdp.transitions[[row]].indices[0])
        assert (state == terminal) == done
        if done:
            break
    assert done
    assert seed or reward == 101


def test_values_and_policy_are_the_optimal_episode():
    task = JumpingTask(30, 10)
    found = jumping_mdp(30)
    discounted = (optimal_rewards(task) * 0.99 ** np.arange(56)).sum()
    assert value_iteration(found.mdp, 0.99).values[0] == pytest.approx(discounted)
    walking = optimal_policy(found.mdp, 0.99).argmax(axis=1)[found.floor]
    np.testing.assert_array_equal(walking[: task.jump_step + 1], optimal_actions(task)[: task.jump_step + 1])


def test_only_trained_positions_are_solved():
    train = [JumpingTask(25, 10), JumpingTask(30, 20)]
    seen = transferred_actions(JumpingTask(30, 13), train, 0.99)
    unseen = transferred_actions(JumpingTask(27, 13), train, 0.99)
    assert np.flatnonzero(seen[:17]).tolist() == [16]
    assert np.flatnonzero(unseen[:14]).tolist() != [13]


def test_a_run_is_written_once(tmp_path, monkeypatch):
    from pisces.experiments import bisimulation_transfer as module

    small = split_tasks("wide")
    monkeypatch.setattr(module, "all_tasks", lambda: [*small.train[:1], *small.test[:1]])
    monkeypatch.setattr(module, "split_tasks", lambda grid, seed: type(small)(small.train[:1], (), small.test[:1]))
    result = run(TransferConfig("wide"), tmp_path)
    assert result["train_solved_percent"] == 100
    assert result["solved"] == "11"  # the unseen task differs in its floor alone
    monkeypatch.setattr(module, "evaluate", lambda config: pytest.fail("ran twice"))
    assert run(TransferConfig("wide"), tmp_path) == result


def test_no_torch():
    script = "import sys, pisces.experiments.bisimulation_transfer; print('torch' in sys.modules)"
    run_script = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run_script.stdout == "False\n"
