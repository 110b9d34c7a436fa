import numpy as np
import pytest
import torch

from pisces.agents.linear.control import SystemBatch
from pisces.agents.linear.settings import LinearSettings
from pisces.agents.linear.training import EnsemblePolicies, TrainingBatch, TwoLayerPolicies, train
from pisces.envs.lqr import LinearSystem, expected_cost, make_distractors, make_system
from pisces.errors import UserError

SEEDS = (0, 1, 2)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)  # matrices this small gain nothing from more


def systems_and_gains(noise=0.02):
    systems = [make_system(seed) for seed in SEEDS]
    rng = np.random.default_rng(0)
    gains = np.stack([[s.optimal_gain + noise * rng.standard_normal((20, 20)) for _ in range(2)] for s in systems])
    return systems, torch.from_numpy(gains)


def batch_of(seeds, distractors=200, pairs=False):
    systems = [make_system(seed) for seed in seeds]
    features = [
        [system.features(make_distractors(seed, distractors, "train", index)).T for index in range(2)]
        for seed, system in zip(seeds, systems, strict=True)
    ]
    factor = torch.cat([torch.eye(20), -torch.eye(20)]).repeat(len(seeds), 1, 1) if pairs else None
    return TrainingBatch(
        SystemBatch.stack(systems, torch.float64), torch.from_numpy(np.array(features)).float(), factor
    )


def two_layers(seeds, settings, size=220):
    layers = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        layers.append([1e-3 * torch.randn(shape, generator=generator) for shape in ((size, 30), (30, 20))])
    return TwoLayerPolicies(*(torch.stack(part) for part in zip(*layers, strict=True)), settings)


def test_costs_equal_the_direct_solution():
    systems, gains = systems_and_gains()
    costs = SystemBatch.stack(systems, torch.float64).costs(gains)
    for system, own_gains, own_costs in zip(systems, gains, costs, strict=True):
        for gain, cost in zip(own_gains, own_costs, strict=True):
            assert float(cost) == pytest.approx(expected_cost(system, gain.numpy()), rel=1e-12)


def test_general_systems_with_fewer_actions_than_states():
    rng = np.random.default_rng(1)
    factor = rng.standard_normal((5, 5))
    system = LinearSystem(
        0.3 * rng.standard_normal((5, 5)),
        rng.standard_normal((5, 2)),
        factor @ factor.T,
        np.diag([1.0, 3.0]),
        np.eye(5),
    )
    gain = torch.from_numpy(system.optimal_gain)[None, None].requires_grad_()
    cost = SystemBatch.stack([system], torch.float64).costs(gain)
    assert float(cost.detach()) == pytest.approx(system.oracle_cost, rel=1e-10)
    (gradient,) = torch.autograd.grad(cost.sum(), gain)
    assert gradient.abs().max() < 1e-8


def test_gradient_equals_finite_differences():
    systems, gains = systems_and_gains(0.05)
    batch = SystemBatch.stack(systems, torch.float64)
    gains.requires_grad_()
    (gradient,) = torch.autograd.grad(batch.costs(gains).sum(), gains)
    rng = np.random.default_rng(1)
    for _ in range(10):
        direction = torch.from_numpy(rng.standard_normal(gains.shape))
        with torch.no_grad():
            ahead, behind = (batch.costs(gains + sign * 1e-5 * direction).sum() for sign in (1, -1))
        assert float((gradient * direction).sum()) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6)


def test_the_riccati_optimum_has_zero_gradient():
    systems, gains = systems_and_gains(0.0)
    gains.requires_grad_()
    (gradient,) = torch.autograd.grad(SystemBatch.stack(systems, torch.float64).costs(gains).sum(), gains)
    assert gradient.abs().max() < 1e-10


def test_unstable_loops_are_infinite_and_leave_the_others_alone():
    systems, gains = systems_and_gains()
    batch = SystemBatch.stack(systems, torch.float64)
    expected = batch.costs(gains)
    broken = gains.clone()
    broken[0, 1] = 30 * torch.eye(20)
    broken[1, 0] = torch.from_numpy(np.eye(20) - systems[1].dynamics)  # on the edge: every eigenvalue is 1
    broken[2, 0] = torch.nan
    broken.requires_grad_()
    costs = batch.costs(broken)
    bad = torch.tensor([[False, True], [True, False], [True, False]])
    assert torch.equal(costs.isinf(), bad)
    assert torch.equal(costs[~bad], expected[~bad])
    (gradient,) = torch.autograd.grad(costs[~bad].sum(), broken)
    assert gradient.isfinite()[~bad].all()
    assert gradient[0, 0].abs().max() > 0


def test_a_slow_loop_is_solved_as_well():
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    slow = SystemBatch(dynamics=(1 - 1e-7) * one, control=one, state_cost=one, action_cost=one)
    assert float(slow.costs(0 * one)) == pytest.approx(1 / (1 - (1 - 1e-7) ** 2), rel=1e-6)


@pytest.mark.parametrize("pairs", [False, True])
def test_training_reaches_the_oracle_in_the_training_environments(pairs):
    settings = LinearSettings(aggregation=1e7 if pairs else 0.0, width=30, patience=50, tolerance=1e-4)
    trained = train(two_layers(SEEDS, settings), batch_of(SEEDS, pairs=pairs), settings)
    for seed, own in zip(SEEDS, trained, strict=True):
        oracle = make_system(seed).oracle_cost
        assert oracle <= own.train_cost < oracle + 0.05
        assert own.steps < settings.max_steps
        policy = (own.layers[0] @ own.layers[1]).T.double().numpy()
        unseen = make_system(seed).features(make_distractors(seed, 200, "test"))
        error = expected_cost(make_system(seed), policy @ unseen) - oracle
        assert error < 0.1 if pairs else error > 5


def test_ensemble_answers_in_turn():
    settings = LinearSettings(policy="ensemble", max_steps=1, optimizer="gradient-descent", learning_rate=1e-3)
    batch = batch_of((0,))
    policies = EnsemblePolicies([torch.zeros(1, 220, 20) for _ in range(2)], settings)
    first_costs = policies.train_step(batch)
    zero = 20 / (1 - 0.64)
    assert float(first_costs[0, 0]) == pytest.approx(zero, rel=1e-6)
    # The second environment meets a policy that the first one's step has changed already.
    answered = float(batch.systems.costs((batch.features[:, 1] @ policies.parts[0].detach() / 2).mT.double()[:, None]))
    assert answered != pytest.approx(zero, rel=1e-6)
    assert float(first_costs[0, 1]) == pytest.approx(answered, rel=1e-6)


@pytest.mark.parametrize("policy", ["two-layer", "ensemble"])
def test_batches_do_not_change_results(policy):
    settings = LinearSettings(policy=policy, max_steps=400, patience=5, tolerance=1e-3)

    def results(seeds):
        if policy == "ensemble":
            start = EnsemblePolicies([torch.zeros(len(seeds), 220, 20) for _ in range(2)], settings)
        else:
            start = two_layers(seeds, settings)
        return train(start, batch_of(seeds), settings)

    together = results(SEEDS)
    assert len({own.steps for own in together}) > 1  # seeds leave the batch one after another
    for seed, own in zip(SEEDS, together, strict=True):
        (alone,) = results((seed,))
        assert own.steps == alone.steps
        assert own.train_cost == pytest.approx(alone.train_cost, rel=1e-6)
        for layer, layer_alone in zip(own.layers, alone.layers, strict=True):
            torch.testing.assert_close(layer, layer_alone, rtol=1e-3, atol=1e-5)


def test_steps_into_instability_are_taken_back():
    settings = LinearSettings(learning_rate=0.3, width=30, max_steps=60)
    trained = train(two_layers(SEEDS, settings), batch_of(SEEDS), settings)
    assert max(own.shrinks for own in trained) > 0
    for own in trained:
        assert all(layer.isfinite().all() for layer in own.layers)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "two-layers"}, "did you mean 'two-layer'"),
        ({"optimizer": "adm"}, "did you mean 'adam'"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0"),
        ({"width": 0}, "width must be >= 1"),
        ({"aggregation": -1.0}, "aggregation must be >= 0"),
        ({"policy": "ensemble", "sparsity": 1.0}, "policy=ensemble requires"),
        ({"discount": 1.0}, r"discount must be in \[0, 1\)"),
    ],
)
def test_bad_settings_are_explained(settings, message):
    with pytest.raises(UserError, match=message):
        LinearSettings(**settings)


def test_bad_shapes_are_explained():
    batch = SystemBatch.stack([make_system(0)], torch.float64)
    with pytest.raises(UserError, match=r"\[S, E, 20, 20\], got \(20, 20\)"):
        batch.costs(torch.zeros(20, 20))
