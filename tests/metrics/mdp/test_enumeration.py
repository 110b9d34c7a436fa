import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from pisces.errors import UserError
from pisces.metrics import FiniteMDP, bisimulation_metric, policy_iteration
from pisces.metrics.mdp.enumeration import observation_key


class Walk(gymnasium.Env):
    """A line of cells; the right end pays and ends. `noise` makes steps random, `growing` never repeats a state."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Dict({"place": spaces.Box(-100, 100, (1,), int)})

    def __init__(self, noise=False, growing=False):
        self.place, self.noise, self.growing = 0, noise, growing

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def step(self, action):
        move = 2 * action - 1
        if self.noise and self.np_random.random() < 0.5:
            move = 0
        self.place = self.place + 1 if self.growing else max(0, self.place + move)
        ended = not self.growing and self.place == 4
        return self.seen(), float(ended), ended, False, {}

    def seen(self):
        return {"place": np.array([self.place])}


class Reusing(gymnasium.Env):
    """A corridor of seven cells that writes every observation into the same array."""

    observation_space, action_space = spaces.Box(-9, 9, (1,)), spaces.Discrete(2)

    def __init__(self):
        self.place = np.zeros(1)

    def reset(self, *, seed=None, options=None):
        self.place[0] = 0
        return self.place, {}

    def step(self, action):
        self.place[0] = np.clip(self.place[0] + (1 if action else -1), 0, 6)
        return self.place, -1.0, False, False, {}


def test_observations_that_share_an_array_are_told_apart():
    def restore(env, observation):
        env.unwrapped.place[0] = observation[0]

    for mdp in (
        FiniteMDP.enumerate(Reusing(), restore=restore),
        FiniteMDP.enumerate(Reusing()),
        FiniteMDP.enumerate_random(Reusing(), 3, restore=restore),
    ):
        assert [float(one[0]) for one in mdp.observations] == [0, 1, 2, 3, 4, 5, 6]
        rows = np.asarray(mdp.transitions.toarray()).reshape(7, 2, 7)
        assert np.array_equal(rows[:, 1].argmax(axis=1), [1, 2, 3, 4, 5, 6, 6])
        assert rows.max(axis=2).min() == 1


def test_a_value_is_one_state_in_any_precision_and_sign_of_zero():
    keys = [observation_key(np.array([value, 0.5], kind)) for kind in ("f4", "f8") for value in (0.0, -0.0)]
    assert len(set(keys)) == 1
    assert observation_key(np.array([1.0])) != observation_key(np.array([2.0]))
    assert observation_key(np.array([1])) != observation_key(np.array([[1]]))


def test_a_walk_by_hand():
    mdp = FiniteMDP.enumerate(Walk())
    assert (mdp.n_states, mdp.n_actions) == (5, 2)
    np.testing.assert_array_equal(mdp.transitions.toarray().argmax(axis=1), [0, 1, 0, 2, 1, 3, 2, 4, 4, 4])
    np.testing.assert_allclose(policy_iteration(mdp, 0.9).values, [0.729, 0.81, 0.9, 1, 0])
    assert mdp.observations[2]["place"][0] == 2
    assert mdp.observations[4] is None
    limited = FiniteMDP.enumerate(gymnasium.wrappers.TimeLimit(Walk(), 2))
    np.testing.assert_array_equal(limited.transitions.toarray(), mdp.transitions.toarray())
    parity = FiniteMDP.enumerate(Walk(growing=True), key=lambda seen: int(seen["place"][0]) % 3)
    np.testing.assert_array_equal(parity.transitions.toarray().argmax(axis=1), [1, 1, 2, 2, 0, 0])


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1"])
def test_search_agrees_with_the_table(name):
    environment = gymnasium.make(name, is_slippery=False)
    table, found = FiniteMDP.from_gymnasium(environment), FiniteMDP.enumerate(environment)
    states = np.array([int(seen) for seen in found.observations[:-1]])
    values = policy_iteration(table, 0.9).values
    np.testing.assert_allclose(policy_iteration(found, 0.9).values[:-1], values[states], atol=1e-9)
    between = bisimulation_metric(found, table, discount=0.9).distance
    np.testing.assert_allclose(between[np.arange(len(states)), states], 0, atol=1e-5)


def put_back(environment, observation):
    environment.unwrapped.s = int(observation)


class Uncopyable(Walk):
    """A walk with something that cannot be copied, as a simulator may have."""

    def __deepcopy__(self, memo):
        raise TypeError("cannot copy a simulator")


def test_environments_that_cannot_be_copied_are_restored():
    def restore(environment, observation):
        environment.unwrapped.place = int(observation["place"][0])

    with pytest.raises(UserError, match=r"cannot be copied \(cannot copy a simulator\); pass restore"):
        FiniteMDP.enumerate(Uncopyable())
    found, copied = FiniteMDP.enumerate(Uncopyable(), restore=restore), FiniteMDP.enumerate(Walk())
    np.testing.assert_array_equal(found.transitions.toarray(), copied.transitions.toarray())
    np.testing.assert_array_equal(found.rewards, copied.rewards)
    with pytest.raises(UserError, match="must be deterministic"):
        FiniteMDP.enumerate(Uncopyable(noise=True), restore=restore)


@pytest.mark.parametrize("restore", [None, put_back])
def test_random_environments_are_sampled(restore):
    environment = gymnasium.make("FrozenLake-v1", is_slippery=True)
    exact, found = (
        FiniteMDP.from_gymnasium(environment),
        FiniteMDP.enumerate_random(environment, 60, restore=restore),
    )
    assert found.observations[-1] is None
    states = np.array([int(seen) for seen in found.observations[:-1]])
    holes = [state for state in range(16) if state not in states]  # all terminal states are one in what was found
    assert holes == [5, 7, 11, 12, 15]
    assert (found.counts[:-1] == 60).all()
    table, estimate = exact.transitions.toarray().reshape(16, 4, 16), found.transitions.toarray().reshape(12, 4, 12)
    truth = np.concatenate([table[states][:, :, states], table[states][:, :, holes].sum(axis=2)[..., None]], axis=2)
    assert (0.5 * np.abs(estimate[:-1] - truth).sum(axis=2) <= found.transition_radii(0.99)[:-1]).all()
    assert 0 < np.abs(estimate[:-1] - truth).max() < 0.3
    again = FiniteMDP.enumerate_random(environment, 60, restore=restore)
    np.testing.assert_array_equal(again.transitions.toarray(), found.transitions.toarray())


def test_sampling_a_deterministic_environment_is_exact():
    exact, found = FiniteMDP.enumerate(Walk()), FiniteMDP.enumerate_random(Walk(), 3)
    np.testing.assert_array_equal(found.transitions.toarray(), exact.transitions.toarray())
    np.testing.assert_array_equal(found.rewards, exact.rewards)
    assert found.index == exact.index
    assert found.counts.tolist() == [[3, 3]] * 4 + [[0, 0]]
    assert not found.unseen.any()
    assert bisimulation_metric(found, discount=0.9).sampling is not None
    parity = FiniteMDP.enumerate_random(Walk(growing=True), 2, key=lambda seen: int(seen["place"][0]) % 3)
    assert len(parity.observations) == parity.n_states == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FiniteMDP.enumerate(Walk(growing=True), max_states=20), "more than 20 states; raise max_states"),
        (lambda: FiniteMDP.enumerate(Walk(noise=True)), "must be deterministic"),
        (lambda: FiniteMDP.enumerate(gymnasium.make("Pendulum-v1")), "Discrete action space"),
        (lambda: FiniteMDP.enumerate("FrozenLake-v1"), "a Gymnasium environment, got str"),
        (lambda: FiniteMDP.enumerate(Walk(), key=3), "key must be a function"),
        (lambda: FiniteMDP.enumerate(Walk(), key=lambda seen: [1]), "something hashable"),
        (lambda: FiniteMDP.enumerate(Walk(), max_states=0), "max_states must be"),
        (lambda: FiniteMDP.enumerate(Walk(), restore=3), "restore must be a function"),
        (lambda: FiniteMDP.enumerate(Walk(noise=True)), "use enumerate_random"),
        (lambda: FiniteMDP.enumerate_random(Walk(), 0), "samples must be an integer >= 1, got 0"),
        (lambda: FiniteMDP.enumerate_random(Walk(), 1.5), "samples must be"),
        (lambda: FiniteMDP.enumerate_random(Walk(growing=True), 2, max_states=20), "more than 20 states"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(UserError, match=words):
        call()
