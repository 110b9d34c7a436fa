import json

import numpy as np
import pytest
import torch

import jumping_meta
from jumping_meta import Episodes, ReptileSettings, adapted, chosen_rate, ensure, meta_table, train_reptile
from pisces.agents.imitation.encoders import make_network
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames, stack_frames


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


EPISODES = Episodes((JumpingTask(20, 10), JumpingTask(45, 20)))


def test_loss_gives_both_actions_the_same_weight():
    network = make_network("images", 2, torch.Generator().manual_seed(0))
    images = torch.from_numpy(stack_frames(optimal_frames(EPISODES.tasks[1])).astype(np.float32) / 2).permute(
        0, 3, 1, 2
    )
    chances = network(images).log_softmax(dim=1)
    actions = optimal_actions(EPISODES.tasks[1])
    expected = -sum(chances[actions == action, action].mean() for action in (0, 1)) / 2
    assert EPISODES.loss(network, 1).item() == pytest.approx(expected.item(), rel=1e-4)


def test_one_iteration_moves_the_weights_to_those_of_its_task():
    settings = ReptileSettings(inner_steps=2, iterations=1)
    network = train_reptile(EPISODES, settings, 3)
    start = make_network("images", 2, torch.Generator().manual_seed(3))
    index = int(np.random.default_rng([3, 0]).integers(2))
    expected = adapted(start, EPISODES, index, settings, 2)
    for found, wanted in zip(network.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def row(seed, rate, percent):
    names = ("train", "adapted_train", "validation", "test", "heldout")
    values = {f"{name}_solved_percent": percent for name in names}
    return {"seed": seed, "settings": {**vars(ReptileSettings(rate))}, **values}


def test_trials_of_another_length_are_not_counted(tmp_path):
    rows = [row(1000, 1e-3, 30.0), row(0, 1e-3, 40.0), row(0, 1e-3, 0.0), row(1000, 1e-2, 99.0)]
    for short in rows[2:]:
        short["settings"]["iterations"] = 10
    (tmp_path / "jumping").mkdir()
    (tmp_path / "jumping" / jumping_meta.FILE).write_text(json.dumps(rows))
    assert jumping_meta.meta_values(tmp_path, "test_solved_percent") == (40.0,)


def test_another_length_chooses_and_stores_its_own_rate(tmp_path, monkeypatch):
    calls = []

    def run(seed, settings):
        calls.append((seed, settings.learning_rate, settings.iterations))
        return row(seed, settings.learning_rate, settings.learning_rate) | {"settings": {**vars(settings)}}

    monkeypatch.setattr(jumping_meta, "run", run)
    jumping_meta.main("0", iterations=10, out=tmp_path)
    assert calls[-1] == (0, 1e-2, 10)
    assert "Not run yet" in meta_table(tmp_path)


def test_runs_are_stored_once_and_validation_tasks_choose(tmp_path, monkeypatch):
    assert "Not run yet" in meta_table(tmp_path)
    calls = []

    def run(seed, settings):
        calls.append((seed, settings.learning_rate))
        return row(seed, settings.learning_rate, {3e-4: 5.0, 1e-3: 30.0, 3e-3: 20.0, 1e-2: 0.0}[settings.learning_rate])

    monkeypatch.setattr(jumping_meta, "run", run)
    for _ in range(2):
        jumping_meta.main("0-1", out=tmp_path)
    assert calls == [(1000, 3e-4), (1000, 1e-3), (1000, 3e-3), (1000, 1e-2), (0, 1e-3), (1, 1e-3)]
    assert chosen_rate(json.loads((tmp_path / "jumping" / "meta_learning.json").read_text())) == 1e-3
    assert "n=2" in meta_table(tmp_path)
    assert ensure(tmp_path, 0, ReptileSettings(1e-3))["seed"] == 0
