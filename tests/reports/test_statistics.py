import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pisces.errors import UserError
from pisces.reports.statistics import (
    Scores,
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    mean_interval,
    median,
    performance_profile,
    probability_of_improvement,
    summarize,
    t_quantile,
)

TWO = Scores({"a": (0.0, 2.0), "b": (10.0, 20.0, 30.0)})


def random_scores(seed, runs=8, tasks=3, shift=0.0):
    rng = np.random.default_rng(seed)
    return Scores({f"t{i}": tuple(rng.normal(i + shift, 1.0, runs).tolist()) for i in range(tasks)})


def matrix(scores):
    return np.stack(scores.arrays(), axis=1)


def test_one_task_by_hand():
    summary = summarize([1.0, 2.0, 3.0, 10.0])
    assert (summary.count, summary.mean, summary.median, summary.interquartile_mean) == (4, 4.0, 2.5, 2.5)
    assert summary.deviation == pytest.approx(np.sqrt((9 + 4 + 1 + 36) / 3))
    assert summary.error == pytest.approx(summary.deviation / 2)


def test_a_single_run_has_no_spread():
    assert np.isnan(summarize([3.0]).deviation)
    assert mean_interval([3.0]) is None


def test_students_interval_by_hand():
    # t with 2 degrees of freedom: 4.302653 at 95 %, 9.924843 at 99 %; the standard error of 1, 2, 3 is 1 / sqrt(3).
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.low == pytest.approx(2 - 4.302653 / np.sqrt(3))
    assert interval.high == pytest.approx(2 + 4.302653 / np.sqrt(3))
    assert mean_interval([1.0, 2.0, 3.0], 0.99).high == pytest.approx(2 + 9.924843 / np.sqrt(3))


def test_tasks_weigh_the_same_in_means_and_in_pools():
    assert mean(TWO) == (1 + 20) / 2
    # Three copies of the runs of a and two of those of b.
    assert median(TWO) == (2 + 10) / 2
    assert interquartile_mean(TWO) == pytest.approx((2 + 2 + 2 + 10 + 10 + 20) / 6)
    assert {task: summarize(values).mean for task, values in TWO.runs.items()} == {"a": 1.0, "b": 20.0}


def test_more_runs_of_one_task_do_not_change_pools():
    many = Scores({"a": (0.0, 2.0) * 5, "b": (10.0, 20.0, 30.0)})
    assert median(many) == median(TWO)
    assert interquartile_mean(many) == pytest.approx(interquartile_mean(TWO))


def test_probability_of_improvement_by_hand():
    x, y = Scores({"a": (1.0, 3.0), "b": (5.0,)}), Scores({"b": (5.0,), "a": (2.0, 0.0)})
    # a: 1 > 0, 3 > 2, 3 > 0 of four pairs; b: a draw.
    assert probability_of_improvement(x, y) == (0.75 + 0.5) / 2
    assert probability_of_improvement(y, x) == 1 - (0.75 + 0.5) / 2


def test_profile_by_hand():
    profile = performance_profile(TWO, [0.0, 15.0, 30.0])
    assert profile.share.tolist() == pytest.approx([(0.5 + 1) / 2, (0 + 2 / 3) / 2, 0.0])
    assert (profile.low <= profile.share).all()
    assert (profile.share <= profile.high).all()
    assert profile.low[2] == profile.high[2] == 0.0


def test_bootstrap_is_stratified_by_task():
    # Resampling within tasks can't change the means of tasks whose runs are equal; mixing tasks would.
    scores = Scores({"a": (0.0, 0.0, 0.0), "b": (9.0, 9.0, 9.0)})
    interval = bootstrap_interval(scores, mean, resamples=200)
    assert (interval.low, interval.high) == (4.5, 4.5)


def test_bootstrap_agrees_with_students_interval_on_many_runs():
    values = np.random.default_rng(1).normal(50, 10, 400)
    interval, students = bootstrap_interval(Scores({"a": tuple(values)}), mean), mean_interval(values.tolist())
    assert interval.low == pytest.approx(students.low, abs=0.15)
    assert interval.high == pytest.approx(students.high, abs=0.15)


def test_seeds_decide_the_draws():
    scores = random_scores(0)
    first = bootstrap_interval(scores, interquartile_mean, resamples=100, seed=1)
    assert bootstrap_interval(scores, interquartile_mean, resamples=100, seed=1) == first
    assert bootstrap_interval(scores, interquartile_mean, resamples=100, seed=2) != first


def test_improvement_interval_holds_the_estimate_and_is_certain_when_all_runs_win():
    x, y = random_scores(0, shift=1.0), random_scores(1)
    interval = improvement_interval(x, y, resamples=200)
    assert interval.low < probability_of_improvement(x, y) < interval.high
    certain = improvement_interval(random_scores(0, shift=100.0), y, resamples=50)
    assert (certain.low, certain.high) == (1.0, 1.0)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(-100, 100), min_size=1, max_size=6), min_size=1))
def test_averages_lie_within_the_runs(values):
    scores = Scores({task: tuple(runs) for task, runs in values.items()})
    runs = np.concatenate(scores.arrays())
    for statistic in (mean, median, interquartile_mean):
        assert runs.min() - 1e-9 <= statistic(scores) <= runs.max() + 1e-9
    assert probability_of_improvement(scores, scores) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Scores({}), "at least one task"),
        (lambda: Scores({"a": ()}), "got () for 'a'"),
        (lambda: Scores({"a": (float("nan"),)}), "scores of 'a' must be finite"),
        (lambda: probability_of_improvement(TWO, Scores({"a": (1.0,)})), "same tasks"),
        (lambda: bootstrap_interval(Scores({"a": (1.0,)}), mean), "two runs of every task"),
        (lambda: bootstrap_interval(TWO, mean, confidence=1.0), "confidence in (0, 1)"),
        (lambda: bootstrap_interval(TWO, mean, resamples=0), "one resample"),
        (lambda: performance_profile(TWO, [[1.0]]), "thresholds"),
        (lambda: summarize([]), "at least one run"),
    ],
)
def test_misuse_is_explained(call, message):
    with pytest.raises(UserError) as error:
        call()
    assert message in str(error.value)


@pytest.fixture(scope="module")
def rliable():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("rliable.library", reason="rliable is not installed: pip install '.[rliable]'")
        metrics = pytest.importorskip("rliable.metrics")
    return library, metrics


def test_averages_agree_with_rliable(rliable):
    _, metrics = rliable
    x, y = random_scores(3), random_scores(4, runs=5)
    assert mean(x) == pytest.approx(metrics.aggregate_mean(matrix(x)))
    assert interquartile_mean(x) == pytest.approx(metrics.aggregate_iqm(matrix(x)))
    assert probability_of_improvement(x, y) == pytest.approx(
        metrics.probability_of_improvement(matrix(x), matrix(y)), abs=1e-12
    )


def test_intervals_and_profiles_agree_with_rliable(rliable):
    library, metrics = rliable
    scores, levels = random_scores(5, runs=20), np.linspace(-1, 4, 6)
    _, intervals = library.get_interval_estimates(
        {"x": matrix(scores)}, lambda values: np.array([metrics.aggregate_iqm(values)]), reps=2000
    )
    ours = bootstrap_interval(scores, interquartile_mean)
    assert [ours.low, ours.high] == pytest.approx(intervals["x"][:, 0].tolist(), abs=0.06)
    shares, bands = library.create_performance_profile({"x": matrix(scores)}, levels, reps=2000)
    profile = performance_profile(scores, levels)
    assert profile.share == pytest.approx(shares["x"])
    assert np.stack([profile.low, profile.high]) == pytest.approx(bands["x"], abs=0.04)


def test_scores_can_be_copied_sent_and_kept_in_sets():
    scores = Scores({"a": np.array([1.0, 2.0]), "b": [3]})
    assert scores.runs == {"a": (1.0, 2.0), "b": (3.0,)}
    for other in (copy.deepcopy(scores), pickle.loads(pickle.dumps(scores))):
        assert other == scores
        assert hash(other) == hash(scores)
    with pytest.raises(TypeError):
        scores.runs["a"] = ()


@pytest.mark.parametrize("values", [[[1.0]], 1.0, np.array([]), ["x"]])
def test_runs_are_a_list_of_numbers(values):
    with pytest.raises(UserError):
        Scores({"a": values})


def test_thresholds_and_seeds_are_numbers():
    with pytest.raises(UserError, match="thresholds"):
        performance_profile(Scores({"a": [1.0, 2.0]}), [float("nan")])
    with pytest.raises(UserError, match="seed"):
        bootstrap_interval(Scores({"a": [1.0, 2.0]}), mean, seed=-1)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
)
def test_numbers_agree_with_scipy(x, y):
    """Ties included; the package does not import scipy.stats, which takes a second."""
    own = probability_of_improvement(Scores({"t": tuple(map(float, x))}), Scores({"t": tuple(map(float, y))}))
    assert own == pytest.approx(stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    assert summarize(x).interquartile_mean == pytest.approx(stats.trim_mean(x, 0.25))
    assert t_quantile(0.95, len(x)) == pytest.approx(stats.t.ppf(0.975, len(x)))
