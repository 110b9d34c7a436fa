"""Losses on transitions against literal versions in float64, and what their arguments change."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from pisces.errors import UserError
from pisces.losses import (
    LOSSES,
    DBCLoss,
    DeepMDPLoss,
    MICoLoss,
    SelfPredictionLoss,
    SimSRLoss,
    TargetNetwork,
    Transitions,
    cosine_prediction_loss,
    curl_loss,
    dbc_loss,
    deepmdp_loss,
    loss_options,
    make_loss,
    mico_loss,
    norm_angle_distance,
    simsr_loss,
)

N, K, A = 5, 3, 2


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(seed=0, n=N, dtype=torch.float32, ends=()):
    generator = torch.Generator().manual_seed(seed)
    flags = torch.zeros(n, dtype=torch.bool)
    flags[list(ends)] = True
    return Transitions(
        draw(seed, n, 4).to(dtype),
        torch.randint(A, (n,), generator=generator),
        draw(seed + 1, n).to(dtype),
        draw(seed + 2, n, 4).to(dtype),
        flags,
    )


def different_pairs(n):
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def huber(error):
    return 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5


PENALTIES = {"squared": lambda error: error**2, "huber": huber}


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_dbc_equals_its_definition(norm, penalty):
    z, r, mean, std = draw(0, N, K), draw(1, N), draw(2, N, K), draw(3, N, K).abs()
    terms = []
    for i, j in different_pairs(N):
        left = np.linalg.norm((z[i] - z[j]).numpy(), norm)
        w2 = math.sqrt(float(((mean[i] - mean[j]) ** 2).sum() + ((std[i] - std[j]) ** 2).sum()))
        terms.append(PENALTIES[penalty](left - abs(float(r[i] - r[j])) - 0.9 * w2))
    value = dbc_loss(z, r, mean, std, discount=0.9, norm=norm, penalty=penalty)
    assert float(value) == pytest.approx(np.mean(terms), rel=1e-12)


def angle(x, y):
    return math.acos(np.clip(float(x @ y) / float(x.norm() * y.norm()), -1, 1))


@pytest.mark.parametrize("self_pairs", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_mico_equals_its_definition(self_pairs, penalty):
    x, y, r, following = draw(0, N, K), draw(1, N, K), draw(2, N), draw(3, N, K)

    def u(a, b):
        return float(a @ a + b @ b) / 2 + 0.3 * angle(a, b)

    pairs = [(i, j) for i in range(N) for j in range(N)] if self_pairs else different_pairs(N)
    terms = [
        PENALTIES[penalty](u(x[i], y[j]) - abs(float(r[i] - r[j])) - 0.9 * u(following[i], following[j]))
        for i, j in pairs
    ]
    value = mico_loss(x, y, r, following, discount=0.9, beta=0.3, penalty=penalty, self_pairs=self_pairs)
    assert float(value) == pytest.approx(np.mean(terms), rel=1e-7)  # of the literal arc cosine


def test_simsr_equals_its_definition():
    u, v, r = (rows / rows.norm(dim=-1, keepdim=True) for rows in (draw(0, N, K), draw(1, N, K), draw(2, N, 1)))
    r = draw(2, N)
    terms = [
        (1 - float(u[i] @ u[j]) - abs(float(r[i] - r[j])) - 0.9 * (1 - float(v[i] @ v[j]))) ** 2
        for i, j in different_pairs(N)
    ]
    assert float(simsr_loss(u, r, v, discount=0.9)) == pytest.approx(np.mean(terms), rel=1e-12)


@pytest.mark.parametrize("squared", [False, True])
def test_deepmdp_equals_its_definition(squared):
    rewards, predicted, following, expected = draw(0, N), draw(1, N), draw(2, N, K), draw(3, N, K)
    power = 2 if squared else 1
    literal = np.mean([abs(float(rewards[i] - predicted[i])) ** power for i in range(N)])
    literal += np.mean([float((following[i] - expected[i]).norm()) ** power for i in range(N)])
    value = deepmdp_loss(predicted, rewards, expected, following, squared=squared)
    assert float(value) == pytest.approx(literal, rel=1e-12)


def test_self_prediction_and_curl_equal_their_definitions():
    x, y, weight = draw(0, N, K), draw(1, N, K), draw(2, K, K)
    cosines = [float(x[i] @ y[i]) / float(x[i].norm() * y[i].norm()) for i in range(N)]
    assert float(cosine_prediction_loss(x, y)) == pytest.approx(1 - np.mean(cosines), rel=1e-12)
    terms = []
    for i in range(N):
        similarities = [math.exp(float(x[i] @ weight @ y[j])) for j in range(N)]
        terms.append(-math.log(similarities[i] / sum(similarities)))
    assert float(curl_loss(x, y, weight)) == pytest.approx(np.mean(terms), rel=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: dbc_loss(z, draw(1, N), draw(2, N, K), draw(3, N, K), discount=0.9),
        lambda z: mico_loss(z, z, draw(1, N), draw(2, N, K), discount=0.9),
        lambda z: simsr_loss(z, draw(1, N), draw(2, N, K), discount=0.9),
        lambda z: deepmdp_loss(draw(0, N), draw(1, N), z, draw(2, N, K), squared=False),
        lambda z: curl_loss(z, draw(1, N, K), draw(2, K, K)),
        lambda z: cosine_prediction_loss(z, draw(1, N, K)),
    ],
)
def test_gradients_equal_finite_differences(function):
    assert torch.autograd.gradcheck(function, draw(0, N, K).requires_grad_())


@pytest.mark.parametrize("features", [torch.zeros(4, 2), torch.ones(4, 2)])
def test_equal_and_zero_features_have_finite_gradients(features):
    for name in LOSSES:
        encoder = nn.Embedding.from_pretrained(features.clone(), freeze=False)
        numbers = torch.arange(4)
        loss = make_loss(name, 2, A)(encoder, Transitions(numbers, numbers % 2, torch.ones(4), numbers.flip(0)))
        loss.backward()
        assert torch.isfinite(encoder.weight.grad).all(), name


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_one_way_to_be_called(name):
    encoder = nn.Linear(4, 6)
    before = torch.get_rng_state()
    loss = make_loss(name, 6, A, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)
    target = TargetNetwork(encoder, tau=0.5)
    value = loss(encoder, batch(ends=[1]), target)
    value.backward()
    assert value.shape == ()
    assert torch.isfinite(value)
    assert float(encoder.weight.grad.abs().sum()) > 0
    assert all(parameter.grad is None for parameter in target.parameters())
    assert loss.distance(torch.randn(3, 6), torch.randn(2, 6)).shape == (3, 2)
    continuous = Transitions(torch.randn(4, 4), torch.randn(4, A), torch.randn(4, 1), torch.randn(4, 4))
    assert torch.isfinite(loss(encoder, continuous))
    again = make_loss(name, 6, A, generator=torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(loss.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("name", ["mico", "simsr", "spr", "curl"])
@torch.no_grad()
def test_target_encoders_change_the_loss_where_the_paper_has_one(name):
    encoder, other = nn.Linear(4, 6), nn.Linear(4, 6)
    loss = make_loss(name, 6, A)
    assert loss.uses_target
    transitions = batch()
    assert float(loss(encoder, transitions)) == float(loss(encoder, transitions, encoder))
    assert float(loss(encoder, transitions)) != float(loss(encoder, transitions, other))


def test_target_networks_follow():
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    target = TargetNetwork(network, tau=0.25)
    old = network[0].weight.detach().clone()
    with torch.no_grad():
        network[0].weight.add_(1.0)
        network[1].running_mean.fill_(3.0)
    torch.testing.assert_close(target.network[0].weight, old)
    target.update(network)
    torch.testing.assert_close(target.network[0].weight, old + 0.25)
    assert float(target.network[1].running_mean[0]) == 3.0
    assert not target(torch.ones(2, 2)).requires_grad


def test_terminal_states_become_absorbing():
    full = batch(ends=[0, 3]).with_absorbing()
    assert len(full) == N + 2
    torch.testing.assert_close(full.observations[N:], batch().next_observations[[0, 3]])
    torch.testing.assert_close(full.next_observations[N:], batch().next_observations[[0, 3]])
    assert full.rewards[N:].tolist() == [0, 0]
    assert full.with_absorbing() is full
    named = Transitions(
        {"a": torch.eye(2)}, torch.zeros(2, 1).long(), torch.ones(2, 1), {"a": torch.ones(2, 2)}, torch.ones(2, 1)
    )
    assert named.with_absorbing().observations["a"].shape == (4, 2)


def test_gradients_stop_where_arguments_say():
    encoder = nn.Linear(4, 6)
    transitions = batch()

    def gradient(loss):
        encoder.zero_grad()
        loss(encoder, transitions).backward()
        return encoder.weight.grad.clone()

    generator = torch.Generator()
    for make, option, values in (
        (DBCLoss, "through_encoder", (True, False)),
        (SimSRLoss, "through_encoder", (True, False)),
        (DeepMDPLoss, "stop_gradient", (True, False)),
        (MICoLoss, "against_target", (True, False)),
    ):
        first, second = (
            gradient(make(6, A, **{option: value}, generator=generator.manual_seed(0))) for value in values
        )
        assert not torch.allclose(first, second), make


def test_layer_norm_and_linear_models():
    with_norm, without = SelfPredictionLoss(6, A), SelfPredictionLoss(6, A, layer_norm=False)
    assert sum(p.numel() for p in with_norm.parameters()) - sum(p.numel() for p in without.parameters()) == 512
    model = DeepMDPLoss(6, A, hidden_size=0).transition_model
    z, actions = torch.randn(2, 6), torch.tensor([1, 0])
    expected = torch.stack(
        [model.layers.weight[a] @ row + model.layers.bias[a] for row, a in zip(z, actions, strict=True)]
    )
    torch.testing.assert_close(model(z, actions), expected)


def test_normalized_dbc_clips_features_to_half_the_diameter():
    loss = make_loss("dbc-normalized", 2, A, discount=0.5, reward_range=4.0)
    features = torch.tensor([[30.0, 40.0], [0.3, 0.4]])
    torch.testing.assert_close(loss.clip(features), torch.tensor([[2.4, 3.2], [0.3, 0.4]]))
    assert float(loss.distance(features, -features).max()) == pytest.approx(8.0)


@pytest.mark.parametrize("name", ["mico", "simsr"])
def test_a_row_of_zeros_keeps_gradients_small(name):
    encoder = torch.nn.Linear(3, 5, bias=True)
    torch.nn.init.zeros_(encoder.bias)
    observations = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    observations[2] = 0.0
    batch = Transitions(observations, torch.zeros(6, dtype=torch.int64), torch.arange(6.0), observations.roll(1, 0))
    make_loss(name, 5, 2)(encoder, batch).backward()
    assert all(float(value.grad.abs().max()) < 1e3 for value in encoder.parameters())


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("length", [1, 300])
def test_mixed_precision_is_finite_with_dead_and_with_long_features(name, kind, length):
    features = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)) * length
    features[2] = 0.0
    weight = torch.eye(8).requires_grad_()
    draws = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():
        loss = make_loss(name, 8, 2, generator=draws)
    transitions = Transitions(features, torch.zeros(6, dtype=torch.int64), torch.arange(6.0), features.roll(1, 0))
    with torch.autocast("cpu", dtype=kind):
        value = loss(lambda x: torch.relu(x @ weight), transitions)
        distance = loss.distance((features @ weight).detach(), features.to(kind))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(distance).all()
    if length == 1:  # gradients of the encoder's own product overflow float16 otherwise, which is a GradScaler's task
        assert torch.isfinite(weight.grad).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda rewards: dbc_loss(draw(0, N, K), rewards, draw(1, N, K), draw(2, N, K), discount=0.9),
        lambda rewards: mico_loss(draw(0, N, K), draw(0, N, K), rewards, draw(1, N, K), discount=0.9),
        lambda rewards: simsr_loss(draw(0, N, K), rewards, draw(1, N, K), discount=0.9),
        lambda rewards: deepmdp_loss(draw(3, N), rewards, draw(1, N, K), draw(2, N, K), squared=True),
    ],
)
@pytest.mark.parametrize("shape", [(N, 1), (N + 1,), (1,)])
def test_rewards_of_other_shapes_are_refused(function, shape):
    with pytest.raises(UserError, match=r"rewards \[n\] of n >= 2 transitions"):
        function(draw(4, *shape))
    assert torch.isfinite(function(draw(4, N)))


def test_angles_are_exact_at_their_ends():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])
    wanted = torch.tensor([[0.0, math.pi / 2, math.pi]])
    torch.testing.assert_close(norm_angle_distance(x[:1], x, beta=1.0) - (1 + x.square().sum(1)) / 2, wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_loss("micro", 2, 2), "mico"),
        (lambda: make_loss("mico", 2, 2, norm=2), "no option 'norm'; choose from: discount, beta"),
        (lambda: make_loss("mico", 2, 2, discount=1.0), "discount"),
        (lambda: make_loss("mico", 2, 2, penalty="l1"), "penalty"),
        (lambda: make_loss("dbc", 2, 2, norm=3), "norm must be 1 or 2"),
        (lambda: make_loss("dbc", 2, 2, reward_range=0.0), "reward_range"),
        (lambda: make_loss("simsr", 2, 2, next_states="sampled"), "next_states"),
        (lambda: TargetNetwork(nn.Linear(1, 1), tau=0.0), "tau"),
        (
            lambda: make_loss("spr", 4, 3)(
                nn.Identity(),
                Transitions(torch.ones(2, 4), torch.ones(2, 2, dtype=torch.int64), torch.ones(2), torch.ones(2, 4)),
            ),
            r"integer actions \[n\] or \[n, 1\]",
        ),
        (lambda: Transitions(torch.ones(2, 1), torch.ones(3), torch.ones(2), torch.ones(2, 1)), "transitions, got"),
        (lambda: Transitions(torch.ones(1, 1), torch.ones(1), torch.ones(1), torch.ones(1, 1)), "n >= 2"),
        (
            lambda: make_loss("deepmdp", 4, 3)(
                nn.Identity(), Transitions(torch.ones(2, 4), torch.ones(2, 2), torch.ones(2), torch.ones(2, 4))
            ),
            r"actions \[n, 3\]",
        ),
        (lambda: make_loss("simsr", 2, 2, reward_scale=math.nan), "reward_scale"),
        (lambda: make_loss("mico", 2, 2, beta="a"), "beta must be positive, got 'a'"),
        (lambda: Transitions(np.ones((2, 1)), np.ones(2), np.ones(2), np.ones((2, 1))), "actions as a tensor"),
        (lambda: Transitions(torch.ones(2, 1), torch.ones(2), torch.tensor(1.0), torch.ones(2, 1)), "single numbers"),
        (
            lambda: Transitions(torch.ones(2, 1), torch.ones(2), torch.ones(2), torch.ones(3, 1)),
            "next_observations of 2 transitions, got 3",
        ),
        (
            lambda: Transitions({"a": torch.ones(3, 1)}, torch.ones(2), torch.ones(2), {"a": torch.ones(2, 1)}),
            "expected observations of 2",
        ),
        (lambda: curl_loss(torch.ones(2, 3), torch.ones(2, 4), torch.eye(3)), "queries and keys"),
    ],
)
def test_bad_arguments_are_explained(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_options_are_selected_by_loss():
    values = {"discount": 0.9, "beta": 0.2, "norm": 2.0}
    assert loss_options("mico", values) == {"discount": 0.9, "beta": 0.2}
    assert loss_options("curl", values) == {}
    with pytest.raises(UserError, match="loss"):
        loss_options("none", values)
