import base64
import json
import zlib

import numpy as np
import pytest

from pisces.envs.jumping import JumpingEnv, JumpingTask
from pisces.experiments.jumping.data import task_metrics
from pisces.experiments.jumping.mdp import episode_bisimulation
from pisces.experiments.jumping.report import page

PAIRS = [(a, b) for a in range(20, 46) for b in range(a, 46)]


def array(text, shape, dtype=np.uint8):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)


@pytest.mark.parametrize("color", ["white", "green"])
@pytest.mark.parametrize("position", [20, 37, 45])
def test_packed_episodes_are_those_of_the_environment(color, position):
    packed = page.packed_task()
    plans, steps_before = packed["plans"], JumpingTask(position, 10).steps_to_obstacle
    heights = array(packed["plan_heights"], (len(plans), 57))
    lengths, outcomes = (
        array(packed[name][color], (26, len(plans)))[position - 20] for name in ("lengths", "outcomes")
    )
    for number, plan in enumerate(plans):
        if any(step >= steps_before for step in plan):
            continue
        env, ended, seen = JumpingEnv(position, 10, color), False, [0]
        env.reset()
        while not ended:
            _, _, ended, _, info = env.step(int(len(seen) - 1 in plan))
            seen.append(env._state.height)
        assert len(seen) - 1 == lengths[number]
        assert seen == heights[number, : len(seen)].tolist()
        text = packed["outcome_texts"][outcomes[number]]
        assert (text in ("reaches the end", "reaches the end, struck on the floor")) == info["success"]


def test_plans_are_all_that_random_actions_lead_to():
    plans, rng = set(page.packed_task()["plans"]), np.random.default_rng(0)
    for rate in (0.02, 0.1, 0.9):
        for _ in range(50):
            env = JumpingEnv(45, 10, "green")
            env.reset()
            jumps = []
            for step in range(JumpingTask(45, 10).steps_to_obstacle):
                action = int(rng.random() < rate)
                jumps += [step] * (action and env._state.height == 0)
                env.step(action)
            assert tuple(jumps) in plans


def matrix(name, number, pair):
    packed = page.packed_metrics()["matrices"][name][number]
    index = np.frombuffer(zlib.decompress(base64.b64decode(packed["index"])), "<u2").reshape(len(PAIRS), 56, 56)
    return np.array(packed["values"])[index[PAIRS.index(pair)]]


@pytest.mark.parametrize("pair", [(20, 20), (25, 45), (30, 41)])
@pytest.mark.parametrize(("number", "discount"), [(0, 0.99), (1, 0.999)])
def test_packed_distances_are_those_of_the_metrics(pair, number, discount):
    tasks = tuple(JumpingTask(position, 10) for position in pair)
    assert list(page.packed_metrics()["titles"]) == ["psm", "bisimulation", "pi-bisimulation", "true"]
    for name in ("psm", "pi-bisimulation"):
        expected = task_metrics([tasks], name, discount)[0]
        np.testing.assert_allclose(matrix(name, number, pair), expected, atol=1e-6)
    np.testing.assert_array_equal(matrix("true", 0, pair), task_metrics([tasks], "true", discount)[0])
    # The stored file: the solver may differ within its tolerance.
    np.testing.assert_allclose(matrix("bisimulation", number, pair), episode_bisimulation(*tasks, discount), atol=1e-5)


def test_the_page_stays_small():
    assert len(json.dumps([page.packed_task(), page.packed_metrics()])) < 600_000


def test_sections_explain_the_diagnosis():
    assert "<!--" not in page.sections()
    assert 'id="diagnosis"' in page.sections()
