from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from pisces.agents.drq import networks
from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.networks import Convolutions
from pisces.agents.drq.replay import TransitionBatch
from pisces.agents.drq.settings import AuxiliaryLoss, DrQSettings
from pisces.agents.drq.views import Views
from pisces.augment import shift_frames
from pisces.losses import LOSSES
from pisces.pairs import Pair

SETTINGS = DrQSettings(
    batch_size=6, channels=3, feature_size=5, hidden_size=12, embedding_size=7, padding=2, auxiliary=True
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_agent(settings=SETTINGS, seed=0):
    return DrQAgent(20, 6, 2, settings, seed)


def make_batch(seed=0, n=6):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (2, n, 20, 20, 6), dtype=np.uint8)
    actions, rewards = rng.uniform(-1, 1, (n, 2)).astype(np.float32), rng.random((n, 1), dtype=np.float32)
    return TransitionBatch(images[0], actions, rewards, images[1], (rng.random((n, 1)) < 0.7).astype(np.float32))


def make_pair(seed=0, length=5):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (2, length, 20, 20, 6), dtype=np.uint8)
    return Pair(*torch.from_numpy(images), torch.from_numpy(rng.random((length, length))))


def snapshot(module):
    return {name: value.clone() for name, value in module.named_parameters()}


def changed(module, before):
    return {name.split(".")[0] for name, value in module.named_parameters() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("count", [7, 8, 13])
def test_large_batches_in_parts_have_the_same_features_and_gradients(monkeypatch, count):
    convolutions = Convolutions(6, 4, (2, 1), torch.Generator().manual_seed(0))
    images = 255 * torch.rand(count, 6, 20, 20)
    results = []
    for largest in (4, count):
        monkeypatch.setattr(networks, "LARGEST_PASS", largest)
        monkeypatch.setattr(networks, "PART", 4)
        convolutions.zero_grad()
        features = convolutions(images)
        features.square().sum().backward()
        results.append([features.detach(), *[value.grad.clone() for value in convolutions.parameters()]])
    for parts, whole in zip(*results, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-5 * float(whole.abs().max()))


def test_log_probability_is_that_of_the_squashed_gaussian():
    agent = make_agent()
    features = torch.randn(4, agent.actor.trunk.linear.in_features)
    noise = torch.randn(4, 2)
    sample = agent.actor.sample(features, noise)
    mean, log_std = agent.actor(features)
    base = torch.distributions.Normal(mean, log_std.exp())
    transform = torch.distributions.TanhTransform(cache_size=1)
    expected = torch.distributions.TransformedDistribution(base, transform)
    actions = transform(mean + log_std.exp() * noise)
    assert torch.allclose(sample.actions, actions)
    assert torch.allclose(sample.log_probability[:, 0], expected.log_prob(actions).sum(1), atol=1e-4)


def test_targets_average_the_views():
    agent, batch = make_agent(), make_batch()
    target = agent.target_values(batch, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    offsets = torch.from_numpy(rng.integers(0, 5, (2, 12)))
    noise = torch.from_numpy(rng.standard_normal((12, 2), dtype=np.float32))
    expected = torch.zeros(6, 1)
    with torch.no_grad():
        for view in range(2):
            rows = slice(6 * view, 6 * view + 6)
            images = shift_frames(torch.from_numpy(batch.next_observations), offsets[:, rows], 2)
            sample = agent.actor.sample(agent.convolutions(images), noise[rows])
            values = agent.target(agent.target_convolutions(images), sample.actions)
            expected += (torch.minimum(*values) - agent.alpha * sample.log_probability) / 2
    continues = torch.from_numpy(batch.continues)
    assert torch.allclose(target, torch.from_numpy(batch.rewards) + 0.99 * continues * expected, atol=1e-5)


PARTS = ("convolutions", "critic", "target", "target_convolutions", "actor", "loss")


def changes_by(agent, action):
    """The parts that an action changes, and of the actor its layers."""
    before = {part: snapshot(getattr(agent, part)) for part in PARTS}
    action()
    different = {part: changed(getattr(agent, part), before[part]) for part in PARTS}
    return {part for part in PARTS if different[part]}, different["actor"]


def test_actor_leaves_critic_and_convolutions_alone():
    agent, rng = make_agent(), np.random.default_rng(0)
    parts, layers = changes_by(agent, lambda: agent._update_actor(make_batch(), rng))
    assert parts == {"actor"}
    assert layers == {"trunk", "hidden1", "hidden2", "output"}
    assert all(parameter.requires_grad for parameter in agent.critic.parameters())


def test_critic_updates_the_convolutions_and_not_the_actor():
    agent = make_agent()
    target = snapshot(agent.target)
    parts, _ = changes_by(agent, lambda: agent._update_critic(make_batch(), np.random.default_rng(0)))
    assert parts == {"critic", "convolutions"}
    parts, _ = changes_by(agent, agent._update_target)
    assert parts == {"target", "target_convolutions"}
    for (name, old), new in zip(target.items(), agent.critic.parameters(), strict=True):
        assert torch.allclose(agent.target.get_parameter(name), torch.lerp(old, new, 0.01), atol=1e-6)


def test_a_target_without_convolutions_uses_the_critics():
    agent, batch = make_agent(replace(SETTINGS, target_convolutions=False, views=1)), make_batch()
    assert agent.target_convolutions is agent.convolutions
    agent.update(batch)
    agent.update(batch)
    assert not any(name.startswith("target_convolutions") for name in agent.state()[0])
    target = agent.target_values(batch, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    offsets = torch.from_numpy(rng.integers(0, 5, (2, 6)))
    noise = torch.from_numpy(rng.standard_normal((6, 2), dtype=np.float32))
    with torch.no_grad():
        features = agent.convolutions(shift_frames(torch.from_numpy(batch.next_observations), offsets, 2))
        sample = agent.actor.sample(features, noise)
        value = torch.minimum(*agent.target(features, sample.actions)) - agent.alpha * sample.log_probability
    expected = torch.from_numpy(batch.rewards) + 0.99 * torch.from_numpy(batch.continues) * value
    assert torch.allclose(target, expected, atol=1e-5)


def test_similarity_loss_updates_encoder_hidden_layers_and_projection():
    agent = make_agent(replace(SETTINGS, auxiliary_optimizer="own"))
    parts, layers = changes_by(agent, lambda: agent._update_auxiliary(lambda: agent.auxiliary_loss(make_pair())))
    assert parts == {"convolutions", "actor", "loss"}
    assert layers == {"trunk", "hidden1", "hidden2"}


def test_shared_optimizers_see_the_sum_of_the_losses():
    agent = make_agent(replace(SETTINGS, coefficient=3.0, actor_frequency=1))
    reference = make_agent(replace(SETTINGS, coefficient=3.0, actor_frequency=1))
    batch, pair, rng = make_batch(), make_pair(), np.random.default_rng(0)
    agent._update_critic(batch, rng, lambda: agent.auxiliary_loss(pair))
    got = agent.convolutions.first.weight.grad, agent.actor.hidden1.weight.grad
    reference._update_critic(batch, np.random.default_rng(0))
    critic = reference.convolutions.first.weight.grad.clone()
    reference = make_agent(replace(SETTINGS, coefficient=3.0, actor_frequency=1))
    reference.auxiliary_loss(pair).backward()
    assert torch.allclose(got[0], critic + 3 * reference.convolutions.first.weight.grad, atol=1e-5)
    assert torch.allclose(got[1], 3 * reference.actor.hidden1.weight.grad, atol=1e-6)


def weights_after_update(optimizer, coefficient):
    agent = make_agent(replace(SETTINGS, auxiliary_optimizer=optimizer, coefficient=coefficient))
    agent.update(make_batch(), make_pair())
    return agent.convolutions.first.weight.detach().double()


def test_the_weight_of_the_similarity_loss_matters_with_shared_optimizers():
    one, many = (weights_after_update("shared", coefficient) for coefficient in (1.0, 100.0))
    assert not torch.allclose(one, many, atol=1e-6)


def test_the_weight_of_the_similarity_loss_is_the_length_of_its_own_optimizers_step():
    none, one, three = (weights_after_update("own", coefficient) for coefficient in (0.0, 1.0, 3.0))
    assert (one - none).abs().max() > 1e-4
    assert torch.allclose(three - none, 3 * (one - none), atol=1e-6)


@pytest.mark.parametrize("actor_frequency", [1, 2])
def test_the_actor_learns_from_the_similarity_loss_at_every_update(actor_frequency):
    agent = make_agent(replace(SETTINGS, actor_frequency=actor_frequency))
    agent.update(make_batch(), make_pair())
    parts, layers = changes_by(agent, lambda: agent.update(make_batch(1), make_pair(1)))
    assert {"actor", "loss", "convolutions"} <= parts
    assert {"trunk", "hidden1", "hidden2"} <= layers


@pytest.mark.parametrize("optimizer", ["shared", "own"])
def test_similarity_loss_falls(optimizer):
    agent, pair = make_agent(replace(SETTINGS, auxiliary_optimizer=optimizer, coefficient=100.0)), make_pair()
    losses = [agent.update(make_batch(k), pair)["auxiliary"] for k in range(40)]
    assert losses[-1] < losses[0]


def test_a_deterministic_policy_adds_scheduled_noise():
    settings = replace(SETTINGS, policy="deterministic", noise_updates=4, noise_end=0.2)
    agent, observation = make_agent(settings), make_batch().observations[0]
    greedy, noise = agent.act(observation), np.array([0.1, -0.2], np.float32)
    assert agent.noise == 1
    assert np.allclose(agent.act(observation, noise), np.clip(greedy + noise, -1, 1), atol=1e-6)
    for k in range(8):
        agent.update(make_batch(k))
    assert agent.noise == pytest.approx(0.2)
    assert agent.alpha == 0


def test_clipped_noise_keeps_the_gradient():
    agent = make_agent(replace(SETTINGS, policy="deterministic"))
    features = torch.randn(4, agent.inputs)
    sample = agent.actor.sample(features, torch.full((4, 2), 50.0), 1.0, 0.3)
    assert torch.allclose(sample.actions, (agent.actor.greedy(features) + 0.3).clamp(-1, 1))
    sample = agent.actor.sample(features, torch.full((4, 2), 50.0), 1.0)
    assert (sample.actions == 1).all()
    sample.actions.sum().backward()
    assert agent.actor.output.weight.grad.abs().max() > 0


def test_strong_augmentation_spares_targets_and_the_rest_of_the_batch():
    views, images = Views(0, 0.5, torch.device("cpu")), make_batch(n=6).observations
    plain = views.shifted(images, np.random.default_rng(0))
    strong = views.strong(plain.clone(), np.random.default_rng(0))
    assert torch.equal(strong[3:], plain[3:])
    assert not torch.equal(strong[:3], plain[:3])
    assert strong.min() >= 0
    assert strong.max() <= 255
    agents = [make_agent(replace(SETTINGS, strong_share=share)) for share in (0.0, 1.0)]
    targets = [agent.target_values(make_batch(), np.random.default_rng(0)) for agent in agents]
    assert torch.equal(*targets)


def test_reused_features_spare_the_actor_the_convolutions(monkeypatch):
    agent = make_agent(replace(SETTINGS, reuse_features=True, target_convolutions=False, actor_frequency=1))
    calls = []
    forward = agent.convolutions.forward
    monkeypatch.setattr(agent.convolutions, "forward", lambda images: calls.append(len(images)) or forward(images))
    agent.update(make_batch())
    assert calls == [12, 12]


def test_the_actor_never_sees_strongly_augmented_frames(monkeypatch):
    changes = {"reuse_features": True, "actor_frequency": 1, "strong_share": 0.5, "views": 1}
    agent = make_agent(replace(SETTINGS, **changes))
    seen = []
    forward = agent.convolutions.forward
    monkeypatch.setattr(agent.convolutions, "forward", lambda images: seen.append(images.clone()) or forward(images))
    monkeypatch.setattr(agent.views, "strong", lambda images, rng: images.zero_())
    agent.update(make_batch())
    assert [bool(images.any()) for images in seen] == [True, False, True]  # target, critic, actor


@pytest.mark.parametrize(
    "change", [{}, {"auxiliary_optimizer": "own"}, {"policy": "deterministic", "target_convolutions": False}]
)
def test_a_restored_agent_goes_on_alike(change):
    settings = replace(SETTINGS, **change)
    agent = make_agent(settings)
    for k in range(3):
        agent.update(make_batch(k), make_pair(k))
    tensors, numbers = agent.state()
    other = make_agent(settings)
    # As a checkpoint gives them: contiguous.
    other.restore({name: value.clone().contiguous() for name, value in tensors.items()}, numbers)
    for k in range(3, 6):
        one, two = agent.update(make_batch(k), make_pair(k)), other.update(make_batch(k), make_pair(k))
        assert one == two
    observation = make_batch().observations[0]
    assert np.array_equal(agent.act(observation), other.act(observation))
    assert np.array_equal(agent.exploration_noise(5), other.exploration_noise(5))


def test_policy_of_another_agent():
    source, agent = make_agent(seed=1), make_agent(seed=0)
    parts, _ = changes_by(agent, lambda: agent.restore_policy(source.policy_state()))
    observation = make_batch().observations[0]
    assert np.array_equal(agent.act(observation), source.act(observation))
    assert parts == {"convolutions", "target_convolutions", "actor"}


def test_a_target_encoder_begins_with_the_convolutions_of_the_other_agent():
    settings = replace(SETTINGS, auxiliary_loss="mico")
    source, agent = make_agent(settings, seed=1), make_agent(settings, seed=0)
    agent.restore_policy(source.policy_state())
    features = make_batch().observations
    images = torch.from_numpy(features).permute(0, 3, 1, 2)
    copied, _ = agent.target_encoder.network.children()
    assert torch.equal(copied(images), source.convolutions(images))
    # The critic's trunk stays the agent's own, also in the copy.
    assert torch.equal(agent.target_encoder(images), agent.encoder(images))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"batch_size": 0}, "batch_size must be >= 1"),
        ({"discount": 1.0}, r"discount must be in \[0, 1\)"),
        ({"coefficient": -1.0}, "coefficient must be >= 0, got -1.0"),
        ({"tau": 0.0}, r"tau must be in \(0, 1\], got 0.0"),
        ({"tau": 1.5}, r"tau must be in \(0, 1\], got 1.5"),
    ],
)
def test_bad_settings_are_explained(setting, message):
    with pytest.raises(ValueError, match=message):
        DrQSettings(**setting)


def test_frames_that_are_too_small_are_refused():
    with pytest.raises(ValueError, match="large enough"):
        DrQAgent(8, 9, 1, SETTINGS, 0)


TRANSITION_LOSSES = get_args(AuxiliaryLoss)[1:]


def test_losses_on_transitions_are_the_named_ones():
    assert set(TRANSITION_LOSSES) == set(LOSSES)


@pytest.mark.parametrize("name", TRANSITION_LOSSES)
@pytest.mark.parametrize("optimizer", ["shared", "own"])
def test_losses_on_transitions_train_the_critics_encoder(name, optimizer):
    settings = replace(SETTINGS, auxiliary_loss=name, auxiliary_optimizer=optimizer, return_steps=3)
    agent = make_agent(settings)
    agent.transition_loss(make_batch()).backward()
    for part in (agent.convolutions, agent.critic.trunk):
        assert all(parameter.grad is not None for parameter in part.parameters())
    assert all(parameter.grad is None for parameter in agent.actor.parameters())
    for k in range(2):
        assert np.isfinite(agent.update(make_batch(k))["auxiliary"])
    tensors, numbers = agent.state()
    other = make_agent(settings)
    other.restore({key: value.clone().contiguous() for key, value in tensors.items()}, numbers)
    assert agent.update(make_batch(3)) == other.update(make_batch(3))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("largest", [1.0, 8.0])
def test_bounded_distances_can_tell_the_best_state_from_the_worst(steps, largest):
    """The distance of states that earn most and nothing at each decision forever is the largest one possible."""
    settings = replace(SETTINGS, auxiliary_loss="simsr", return_steps=steps)
    loss = DrQAgent(20, 6, 2, settings, 0, largest_reward=largest).loss
    per_transition = largest * sum(settings.discount**k for k in range(steps))
    distance = per_transition / (1 - loss.discount)
    assert loss.reward_scale * distance == pytest.approx(2.0)  # of cosines
    normalized = replace(settings, auxiliary_loss="dbc-normalized")
    loss = DrQAgent(20, 6, 2, normalized, 0, largest_reward=largest).loss
    assert 2 * loss.longest == pytest.approx(distance)
    assert DrQAgent(20, 6, 2, replace(settings, auxiliary_loss="dbc"), 0).loss.longest is None


def test_a_coefficient_of_zero_leaves_the_agent_as_without_the_loss():
    plain = make_agent(replace(SETTINGS, auxiliary=False))
    agent = make_agent(replace(SETTINGS, auxiliary_loss="mico", coefficient=0.0))
    agent.restore_policy(plain.policy_state())
    agent.critic.load_state_dict(plain.critic.state_dict())
    agent.target.load_state_dict(plain.target.state_dict())
    for k in range(3):
        without, with_loss = plain.update(make_batch(k)), agent.update(make_batch(k))
        assert {name: with_loss[name] for name in without} == without
