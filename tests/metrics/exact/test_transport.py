import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mdps import earth_movers, linear_program

from pisces.errors import UserError
from pisces.metrics import optimal_transport


def random_problem(rng, most=8):
    """1 to 8 points a side; often with zero masses, equal masses (degenerate bases) and tied or zero costs."""
    n, m = rng.integers(1, most + 1, size=2)
    kind = rng.integers(4)
    if kind == 0:
        return rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    if kind == 1:  # ties everywhere
        return rng.integers(0, 3, (n, m)).astype(float), np.full(n, 1 / n), np.full(m, 1 / m)
    p, q = (rng.multinomial(6, np.ones(size) / size) / 6 for size in (n, m))  # zero masses, partial sums that coincide
    return (rng.normal(size=(n, m)) if kind == 2 else np.round(rng.random((n, m)), 1)), p, q


def check_coupling(result, cost, p, q):
    assert (result.coupling >= 0).all()
    np.testing.assert_allclose(result.coupling.sum(axis=1), p, atol=1e-12)
    np.testing.assert_allclose(result.coupling.sum(axis=0), q, atol=1e-12)
    np.testing.assert_allclose((result.coupling * cost).sum(), result.value, atol=1e-12)


def test_agrees_with_pot_on_thousands_of_transports():
    rng = np.random.default_rng(0)
    for _ in range(4000):
        cost, p, q = random_problem(rng)
        result = optimal_transport(cost, p, q)
        check_coupling(result, cost, p, q)
        assert result.value == pytest.approx(earth_movers(cost, p, q), abs=1e-8)


def test_agrees_with_a_linear_program_on_thousands_of_transports():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        cost, p, q = random_problem(rng)
        assert optimal_transport(cost, p, q).value == pytest.approx(linear_program(cost, p, q), abs=1e-8)


@pytest.mark.parametrize("shape", [(40, 50), (2, 100), (100, 2), (2, 60), (90, 3), (1, 80)])
def test_wide_transports(shape):
    rng = np.random.default_rng(2)
    cost, p, q = rng.random(shape), rng.dirichlet(np.ones(shape[0])), rng.dirichlet(np.ones(shape[1]))
    result = optimal_transport(cost, p, q)
    check_coupling(result, cost, p, q)
    assert result.value == pytest.approx(ot.emd2(p, q, cost), abs=1e-10)


@pytest.mark.parametrize("size", [66, 150, 400])
@pytest.mark.parametrize("kind", ["random", "plane", "ties", "negative"])
def test_wide_transports_are_optimal_by_their_potentials(size, kind):
    rng = np.random.default_rng(size)
    p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size - 1))
    points = rng.random((size, 2)), rng.random((size - 1, 2))
    cost = {
        "random": rng.random((size, size - 1)),
        "plane": np.linalg.norm(points[0][:, None] - points[1][None], axis=-1),
        "ties": rng.integers(0, 3, (size, size - 1)).astype(float),
        "negative": rng.normal(size=(size, size - 1)),
    }[kind]
    if kind == "ties":
        p, q = np.full(size, 1 / size), np.full(size - 1, 1 / (size - 1))
    result = optimal_transport(cost, p, q)
    check_coupling(result, cost, p, q)
    assert result.value == pytest.approx(ot.emd2(p, q, cost, numItermax=10**7), abs=1e-10)


@pytest.mark.parametrize("size", [30, 90])
def test_many_ties_do_not_cycle(size):
    cost = np.abs(np.arange(size)[:, None] - np.arange(size)[None]) % 3.0
    uniform = np.full(size, 1 / size)
    assert optimal_transport(cost, uniform, uniform).value == pytest.approx(0, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 5), st.floats(-3, 3))
def test_value_moves_with_the_cost(seed, scale, shift):
    rng = np.random.default_rng(seed)
    cost, p, q = random_problem(rng)
    base = optimal_transport(cost, p, q).value
    assert optimal_transport(scale * cost + shift, p, q).value == pytest.approx(scale * base + shift, abs=1e-9)
    assert optimal_transport(cost.T, q, p).value == pytest.approx(base, abs=1e-9)


def test_no_mass_costs_nothing():
    assert optimal_transport(np.ones((2, 3)), np.zeros(2), np.zeros(3)).value == 0


@pytest.mark.parametrize(
    ("cost", "p", "q", "words"),
    [
        (np.ones((2, 2)), [0.5, 0.5], [1.0], "expected cost"),
        (np.full((1, 1), np.nan), [1.0], [1.0], "finite"),
        (np.ones((1, 2)), [1.0], [1.5, -0.5], ">= 0"),
        (np.ones((1, 1)), [1.0], [0.9], "equal sums"),
    ],
)
def test_bad_problems(cost, p, q, words):
    with pytest.raises(UserError, match=words):
        optimal_transport(cost, p, q)
