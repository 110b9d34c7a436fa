import numpy as np
import pytest
import torch

from pisces.agents.imitation.agent import ImitationAgent, ImitationData
from pisces.agents.imitation.auxiliary import TRANSITION_LOSSES, EpisodeTransitions, draw_transitions
from pisces.agents.imitation.encoders import ImageEncoder
from pisces.agents.imitation.settings import ImitationSettings
from pisces.envs.jumping import JumpingTask, optimal_actions, optimal_frames, optimal_rewards, stack_frames
from pisces.losses import LOSSES
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import Trajectory

TASKS = [JumpingTask(20, 10), JumpingTask(30, 15), JumpingTask(45, 20)]


def data_of(tasks=TASKS, metric=True):
    observations = np.concatenate([stack_frames(optimal_frames(task)) for task in tasks])
    actions = np.concatenate([optimal_actions(task) for task in tasks])
    numbers = np.arange(len(actions)).reshape(len(tasks), -1)
    episodes = [Trajectory(row, actions[row]) for row in numbers]
    following = np.concatenate([numbers[:, 1:], numbers[:, -1:]], axis=1).ravel()
    transitions = EpisodeTransitions(np.concatenate([optimal_rewards(task) / 100 for task in tasks]), following)
    pairs = TrajectoryPairs(episodes, discount=0.99) if metric else None
    return ImitationData(observations, actions, pairs, transitions)


def agent_of(seed=0, **settings):
    defaults = {"batch_size": 16, "epochs": 2, "learning_rate": 1e-3}
    return ImitationAgent(data_of(), ImitationSettings(**{**defaults, **settings}), seed)


def weights_after(agent, iterations):
    for _ in range(iterations):
        agent.train_iteration()
    return torch.cat([parameter.detach().flatten() for parameter in agent.parameters])


def test_batches_are_class_balanced_and_cover_the_data():
    agent = agent_of(batch_size=64)
    batches = [agent._draw_batch(np.random.default_rng(k)) for k in range(40)]
    drawn = np.concatenate(batches)
    jumps = agent.data.actions[drawn] == 1
    assert jumps.mean() == pytest.approx(0.5, abs=0.03)
    counts = np.bincount(drawn, minlength=len(agent.data.actions))
    for label in (0, 1):
        members = counts[agent.data.actions == label]
        # A shuffled and repeated stream serves all members equally often, up to the pass under way.
        assert members.max() - members.min() <= 1


@pytest.mark.parametrize("action", [0, 1])
def test_data_with_one_action_only_fill_a_batch(action):
    whole = data_of(metric=False)
    data = ImitationData(whole.observations, np.full_like(whole.actions, action))
    agent = ImitationAgent(data, ImitationSettings(batch_size=64, epochs=1, learning_rate=1e-3), seed=0)
    drawn = np.concatenate([agent._draw_batch(np.random.default_rng(k)) for k in range(21)])
    assert (np.bincount(drawn) == 8).all()  # 168 states, 21 batches of 64


@pytest.mark.parametrize("augmentation", ["none", "randconv"])
@pytest.mark.parametrize("auxiliary", ["none", "contrastive", "l2"])
def test_plain_images_train_the_same_network(augmentation, auxiliary):
    settings = {"augmentation": augmentation, "auxiliary": auxiliary, "l2_coefficient": 1e-3, "dropout": 0.2}
    fast, plain = agent_of(**settings), agent_of(**settings)
    plain.encoder = ImageEncoder(plain.data.observations, plain.device)
    start = weights_after(plain, 0)
    difference = (weights_after(fast, 3) - weights_after(plain, 3)).norm()
    assert difference < 1e-3 * (weights_after(plain, 0) - start).norm()


def test_same_seed_same_weights_other_seed_others():
    assert torch.equal(weights_after(agent_of(3), 3), weights_after(agent_of(3), 3))
    assert not torch.equal(weights_after(agent_of(3), 1), weights_after(agent_of(4), 1))


def test_goes_on_from_its_state():
    whole = agent_of(augmentation="randconv", auxiliary="contrastive")
    weights_after(whole, 3)
    tensors, numbers = whole.state()
    copies = {name: value.clone() for name, value in tensors.items()}
    fresh = agent_of(augmentation="randconv", auxiliary="contrastive")
    fresh.restore(copies, dict(numbers))
    assert torch.equal(weights_after(whole, 4), weights_after(fresh, 4))


def test_regularization_is_the_mean_over_tensors():
    with_projection = agent_of(auxiliary="contrastive", l2_coefficient=0.1)
    without = agent_of(l2_coefficient=0.1)
    assert (len(with_projection.parameters), len(without.parameters)) == (12, 10)
    expected = 0.1 * sum(0.5 * float(p.detach().square().sum()) for p in without.parameters) / 10
    assert float(without._regularization().detach()) == pytest.approx(expected, rel=1e-5)


def test_learning_rate_decays_after_each_epoch():
    agent = agent_of(batch_size=100)
    assert agent.iterations_per_epoch == 168 // 100 + 1
    rates = []
    for _ in range(5):
        agent.train_iteration()
        rates.append(agent.optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, 1e-3 * 0.999 ** np.array([0, 0, 1, 1, 2]))


def test_published_numbers_of_iterations():
    tasks = [JumpingTask(p, h) for p in range(20, 46, 5) for h in (10, 15, 20)]
    agent = ImitationAgent(data_of(tasks, metric=False), ImitationSettings(), 0)
    assert (agent.iterations_per_epoch, agent.total_iterations) == (4, 8000)


def test_learns_to_imitate():
    agent = agent_of(batch_size=64, learning_rate=2e-3)
    losses = [agent.train_iteration().imitation for _ in range(60)]
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:5])


def test_auxiliary_loss_moves_the_encoder_but_not_the_policy_layer():
    torch.manual_seed(0)
    agent = agent_of(auxiliary="contrastive")
    pair = agent._draw_pair(np.random.default_rng(0))
    numbers = [part.numpy() for part in (pair.observations_x, pair.observations_y)]
    agent._auxiliary_loss(*agent._represent(numbers, [None, None]), pair.metric).backward()
    assert agent.network.conv1.weight.grad.abs().sum() > 0
    assert agent.loss.projection.weight.grad.abs().sum() > 0
    assert agent.network.policy.weight.grad is None


def test_pairs_are_sampled_with_the_generator_of_the_iteration():
    agent = agent_of(auxiliary="contrastive")
    for seed in range(20):
        pair = agent._draw_pair(np.random.default_rng(seed))
        x, y = np.random.default_rng(seed).choice(3, 2, replace=False)
        assert torch.equal(pair.observations_x, 56 * x + torch.arange(56))
        assert torch.equal(pair.observations_y, 56 * y + torch.arange(56))


def test_passthrough_is_sampled_once_per_run_for_the_imitation_batch():
    for seed in range(3):
        agent = agent_of(seed, augmentation="randconv", passthrough_per="run", passthrough_probability=0.5)
        draws = [agent._draw_kernel(np.random.default_rng(k), batch=True) is None for k in range(20)]
        assert len(set(draws)) == 1
        others = [agent._draw_kernel(np.random.default_rng(k)) is None for k in range(20)]
        assert len(set(others)) == 2


def test_evaluation_kernels_depend_on_seed_and_iteration():
    agent = agent_of(augmentation="randconv", passthrough_probability=0.0)
    first = agent.evaluation_kernels()
    assert len(first) == 5
    assert all(torch.equal(a, b) for a, b in zip(first, agent.evaluation_kernels(), strict=True))
    agent.iteration = 7
    assert not torch.equal(first[0], agent.evaluation_kernels()[0])
    assert agent_of().evaluation_kernels() == [None]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"augmentation": "randcon"}, "did you mean 'randconv'"),
        ({"auxiliary": "contrast"}, "did you mean 'contrastive'"),
        ({"metric": "psn"}, "did you mean 'psm'"),
        ({"learning_rate": 0}, "learning_rate must be > 0"),
        ({"scale": -1}, "scale must be > 0"),
        ({"epochs": 0}, "epochs must be >= 1"),
        ({"dropout": 1.0}, "dropout must be in"),
        ({"discount": 1.0}, "discount must be in"),
        ({"passthrough_probability": 2}, "passthrough_probability"),
        ({"coefficient": -1.0}, "coefficient must be >= 0, got -1.0"),
        ({"l2_coefficient": -1e-5}, "l2_coefficient must be >= 0, got -1e-05"),
        ({"learning_rate_decay": 0.0}, r"learning_rate_decay must be in \(0, 1\], got 0.0"),
        ({"learning_rate_decay": 1.01}, r"learning_rate_decay must be in \(0, 1\], got 1.01"),
    ],
)
def test_bad_settings_are_explained(setting, message):
    with pytest.raises(ValueError, match=message):
        ImitationSettings(**setting)


def test_the_step_size_falls_by_the_decay_and_along_a_cosine():
    plain, cosine = agent_of(learning_rate_decay=0.5), agent_of(learning_rate_decay=1.0, schedule="cosine")
    rates = {}
    for name, agent in (("plain", plain), ("cosine", cosine)):
        rates[name] = []
        for iteration in range(agent.total_iterations):
            agent.iteration = iteration
            rates[name].append(agent.learning_rate)
    assert sorted(set(rates["plain"]), reverse=True) == [1e-3, 5e-4]
    assert rates["cosine"][0] == 1e-3
    assert rates["cosine"][len(rates["cosine"]) // 2] == pytest.approx(5e-4, rel=0.1)
    assert 0 < rates["cosine"][-1] < 1e-4


def trained_starts(agent, scores):
    """Trains an agent to its end, and returns the weights at the end of each start."""
    ends = []
    while agent.iteration < agent.total_iterations:
        weights = weights_after(agent, 1)
        if agent.start_ends:
            ends.append(weights)
            agent.keep_or_drop(scores[len(ends) - 1])
    return ends


def test_of_several_starts_the_best_is_kept():
    agent = agent_of(epochs=1, restarts=4)
    ends = trained_starts(agent, [1.0, 3.0, 2.0, 3.0])
    assert len(ends) == 4
    assert torch.equal(weights_after(agent, 0), ends[1])
    assert not any(torch.equal(ends[0], other) for other in ends[1:])


def test_the_first_start_is_the_training_without_restarts():
    single = agent_of(epochs=1, schedule="cosine")
    assert not single.start_ends
    ends = trained_starts(agent_of(epochs=1, restarts=2, schedule="cosine"), [0.0, 0.0])
    assert torch.equal(weights_after(single, single.total_iterations), ends[0])
    assert not single.start_ends


def test_every_start_has_the_whole_schedule():
    agent = agent_of(epochs=2, restarts=3, schedule="cosine", learning_rate_decay=0.5)
    rates = []
    for iteration in range(agent.total_iterations):
        agent.iteration = iteration
        rates.append(agent.learning_rate)
    third = len(rates) // 3
    assert rates[:third] == rates[third : 2 * third] == rates[2 * third :]
    assert rates[0] > rates[third - 1]


def test_restarts_go_on_from_their_state():
    whole, fresh = (agent_of(epochs=1, restarts=2, auxiliary="contrastive") for _ in range(2))
    first = whole.iterations_per_start
    weights_after(whole, first)
    whole.keep_or_drop(5.0)
    tensors, numbers = whole.state()
    fresh.restore({name: value.clone() for name, value in tensors.items()}, dict(numbers))
    kept = tensors["kept.network.policy.weight"].clone()
    assert torch.equal(weights_after(whole, first), weights_after(fresh, first))
    fresh.keep_or_drop(4.0)
    assert torch.equal(fresh.network.policy.weight, kept)


def test_losses_on_transitions_are_the_named_ones():
    assert set(TRANSITION_LOSSES) == set(LOSSES)


@pytest.mark.parametrize("name", TRANSITION_LOSSES)
@pytest.mark.parametrize("augmentation", ["none", "randconv"])
def test_losses_on_transitions_train_and_resume(name, augmentation):
    whole, fresh = (agent_of(auxiliary=name, augmentation=augmentation, discount=0.9) for _ in range(2))
    first = whole.train_iteration()
    assert np.isfinite(first.auxiliary)
    assert first.auxiliary != 0
    tensors, numbers = whole.state()
    fresh.restore({key: value.clone() for key, value in tensors.items()}, dict(numbers))
    assert torch.equal(weights_after(whole, 2), weights_after(fresh, 2))


def test_transitions_follow_episodes():
    data = data_of()
    batch = draw_transitions(data.transitions, data.actions, 500, np.random.default_rng(0), torch.device("cpu"))
    last = batch.observations % 56 == 55
    assert torch.equal(batch.next_observations, torch.where(last, batch.observations, batch.observations + 1))
    assert batch.rewards[last].min() > 1
    assert torch.equal(batch.actions, torch.from_numpy(data.actions)[batch.observations])
