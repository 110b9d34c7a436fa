import numpy as np
import pytest
import torch

from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.replay import TransitionBatch
from pisces.agents.drq.settings import DrQSettings
from pisces.augment import shift_frames
from pisces.pairs import Pair

SETTINGS = DrQSettings(
    batch_size=6, channels=3, feature_size=5, hidden_size=12, embedding_size=7, padding=2, anchors=4, auxiliary=True
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
            sample = agent.actor.sample(agent.critic.convolutions(images), noise[rows])
            values = agent.target(agent.target.convolutions(images), sample.actions)
            expected += (torch.minimum(*values) - agent.alpha * sample.log_probability) / 2
    continues = torch.from_numpy(batch.continues)
    assert torch.allclose(target, torch.from_numpy(batch.rewards) + 0.99 * continues * expected, atol=1e-5)


def test_actor_leaves_critic_and_convolutions_alone():
    agent, rng = make_agent(), np.random.default_rng(0)
    critic, actor = snapshot(agent.critic), snapshot(agent.actor)
    agent._update_actor(make_batch(), rng)
    assert not changed(agent.critic, critic)
    assert changed(agent.actor, actor) == {"trunk", "hidden1", "hidden2", "output"}
    assert all(parameter.requires_grad for parameter in agent.critic.parameters())


def test_critic_updates_the_convolutions_and_not_the_actor():
    agent = make_agent()
    critic, actor, target = snapshot(agent.critic), snapshot(agent.actor), snapshot(agent.target)
    agent._update_critic(make_batch(), np.random.default_rng(0))
    assert changed(agent.critic, critic) == {"convolutions", "trunk", "values"}
    assert not changed(agent.actor, actor)
    assert not changed(agent.target, target)
    agent._update_target()
    for (name, old), new in zip(target.items(), agent.critic.parameters(), strict=True):
        assert torch.allclose(agent.target.get_parameter(name), torch.lerp(old, new, 0.01), atol=1e-6)


def test_similarity_loss_updates_encoder_hidden_layers_and_projection():
    agent = make_agent()
    critic, actor, loss = snapshot(agent.critic), snapshot(agent.actor), snapshot(agent.loss)
    agent._update_auxiliary(make_pair())
    assert changed(agent.critic, critic) == {"convolutions"}
    assert changed(agent.actor, actor) == {"trunk", "hidden1", "hidden2"}
    assert changed(agent.loss, loss) == {"projection"}


def test_similarity_loss_falls():
    agent, pair = make_agent(), make_pair()
    losses = [agent._update_auxiliary(pair) for _ in range(40)]
    assert losses[-1] < losses[0]


def test_a_restored_agent_goes_on_alike():
    agent = make_agent()
    for k in range(3):
        agent.update(make_batch(k), make_pair(k))
    tensors, numbers = agent.state()
    other = make_agent(seed=0)
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
    critic = snapshot(agent.critic)
    agent.restore_policy(source.state()[0])
    observation = make_batch().observations[0]
    assert np.array_equal(agent.act(observation), source.act(observation))
    assert changed(agent.critic, critic) == {"convolutions"}


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
