"""Distances between the states of two trajectories or MDPs, as files and a picture."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pisces.errors import UserError, unknown_name
from pisces.files import printable, replacing, write_atomically
from pisces.metrics import (
    FiniteMDP,
    MetricResult,
    behavior_cost,
    bisimulation_metric,
    l1_distance,
    mico_distance,
    nearest_neighbors,
    pi_bisimulation_metric,
    policy_similarity_metric,
    reward_difference,
    total_variation,
    trajectory_metric,
)
from pisces.metrics.mdp.finite_mdp import FILE_KEYS
from pisces.metrics.sequence import Last
from pisces.metrics.setting import Accuracy
from pisces.metrics.trajectory import TrajectoryCost, is_discrete
from pisces.reports.figures import heat_map, plain_text
from pisces.reports.metric_page import Side, metric_page
from pisces.trajectories import Trajectory

FloatArray = NDArray[np.float64]
DEFAULT_ACCURACY = Accuracy(None, None)
"""The tolerance that the metrics choose themselves."""
TIES = {"first": "optimal", "uniform": "optimal-uniform"}
"""Optimal policies by what they do in states with several optimal actions."""
MDP_METRICS: dict[str, Callable[..., MetricResult]] = {
    "psm": policy_similarity_metric,
    "pi-bisimulation": pi_bisimulation_metric,
    "bisimulation": bisimulation_metric,
    "mico": mico_distance,
}
"""The metrics between MDPs by name."""


@dataclass(frozen=True)
class MetricReport:
    """Distances and what follows from them."""

    distance: FloatArray
    """Distances, [n, m]."""
    name: str
    """The metric's name, or that of the cost it is built on."""
    error_bound: float = 0.0
    """Certified error of every distance."""
    notes: tuple[str, ...] = ()
    """What to know about the distances: ties between optimal actions, errors of estimated MDPs."""
    within: bool = False
    """Whether the distances are within one MDP, so that a state is not its own neighbor."""
    sides: tuple[Side, Side] = (Side("x"), Side("y"))
    """What the page shows of the states of x and y."""

    @property
    def nearest(self) -> NDArray[np.int64]:
        """For each state of x, the nearest state of y (the first one if there are several), [n]; not itself."""
        if not self.within or len(self.distance) == 1:
            return np.asarray(self.distance.argmin(axis=1), dtype=np.int64)
        return nearest_neighbors(self.distance, include_self=False).nearest_y[:, 0]

    def write(self, out: Path, name_x: str, name_y: str) -> list[Path]:
        """Writes the distances (npz), the nearest neighbors (csv), the heat map (png) and a page to explore them."""
        name_x, name_y = printable(name_x), printable(name_y)
        axes = (plain_text(f"state of {name}") for name in (name_x, name_y))
        figure = heat_map(self.distance, self.name, *axes)
        make_output_folder(out)
        paths = [out / "distance.npz", out / "nearest.csv", out / "heat_map.png", out / "metric.html"]
        bound = np.float64(self.error_bound)
        with replacing(paths[0]) as file:
            np.savez_compressed(file, distance=self.distance, nearest=self.nearest, error_bound=bound)
        rows = (f"{i},{j},{self.distance[i, j]:.9g}" for i, j in enumerate(self.nearest))
        write_atomically(paths[1], "state_x,nearest_state_y,distance\n" + "\n".join(rows) + "\n")
        with replacing(paths[2]) as file:
            figure.savefig(file, format="png", dpi=130)
        sides = (replace(self.sides[0], name=name_x), replace(self.sides[1], name=name_y))
        write_atomically(paths[3], metric_page(self.distance, self.nearest, self.name, sides, self.notes))
        return paths


def make_output_folder(out: Path) -> None:
    """Makes a folder, or raises if a file is in its place."""
    if out.exists() and not out.is_dir():
        raise UserError(f"expected an output folder, got {str(out)!r}, which is a file")
    out.mkdir(parents=True, exist_ok=True)


def compare_files(
    x: Path,
    y: Path,
    discount: float,
    metric: str,
    cost: str,
    last: Last | None,
    accuracy: Accuracy = DEFAULT_ACCURACY,
    ties: str = "first",
) -> MetricReport:
    """Measures distances between two files, both of trajectories or both of MDPs; see the functions below."""
    if is_mdp_file(x) and is_mdp_file(y):
        if cost != "auto" or last is not None:
            raise UserError("expected --metric for MDP files, got --cost or --last, which are for trajectories")
        mdp_x = FiniteMDP.load(x)
        mdp_y = mdp_x if x.resolve() == y.resolve() else FiniteMDP.load(y)
        found = compare_mdps(mdp_x, mdp_y, discount, metric, accuracy, ties)
        within = found.definition is not None and found.definition.within
        return MetricReport(found.distance, metric, found.error_bound, _notes(found), within, _mdp_sides(found))
    if is_mdp_file(x) != is_mdp_file(y):
        Trajectory.load(y if is_mdp_file(x) else x)  # a missing or damaged file is reported first
        raise UserError(f"expected two trajectories or two MDPs, got one of each: {str(x)!r} and {str(y)!r}")
    if metric != "psm":
        raise UserError(
            f"expected an MDP file for the metric {metric!r}, got trajectories; for rewards use --cost reward"
        )
    if accuracy != DEFAULT_ACCURACY or ties != "first":
        raise UserError("expected no --tolerance for trajectories, whose distances are exact, and no --ties")
    return compare_trajectories(Trajectory.load(x), Trajectory.load(y), discount, cost, last)


def compare_mdps(
    mdp_x: FiniteMDP,
    mdp_y: FiniteMDP,
    discount: float,
    metric: str,
    accuracy: Accuracy = DEFAULT_ACCURACY,
    ties: str = "first",
) -> MetricResult:
    """Computes a metric between MDPs by its name, for optimal policies, with a progress bar (MICo has none)."""
    if metric not in MDP_METRICS:
        raise unknown_name("metric", metric, MDP_METRICS)
    if ties not in TIES:
        raise unknown_name("ties", ties, TIES)
    function, options = MDP_METRICS[metric], _options(metric, accuracy, ties)
    if metric == "mico":
        return function(mdp_x, mdp_y, discount=discount, **options)
    with ErrorBar(accuracy.tolerance) as bar:
        return function(mdp_x, mdp_y, discount=discount, progress=bar.update, **options)


def _mdp_sides(found: MetricResult) -> tuple[Side, Side]:
    """The most probable actions of the policies, if the metric has policies."""
    if found.definition is None or found.definition.policies is None:
        return Side("x", in_sequence=False), Side("y", in_sequence=False)
    x, y = (policy.argmax(axis=1).tolist() for policy in found.definition.policies)
    return Side("x", actions=x, in_sequence=False), Side("y", actions=y, in_sequence=False)


def _trajectory_side(name: str, trajectory: Trajectory) -> Side:
    actions = trajectory.actions
    if actions is None and trajectory.policies is not None:
        actions = trajectory.policies.argmax(axis=1)
    observations = np.asarray(trajectory.observations)
    if actions is None or not is_discrete(actions):
        return Side(name, observations)
    # Vectors of discrete actions are compared as a whole.
    labels = [int(one) if actions.ndim == 1 else ", ".join(map(str, one)) for one in actions.tolist()]
    return Side(name, observations, labels)


def _options(metric: str, accuracy: Accuracy, ties: str) -> dict[str, Any]:
    options: dict[str, Any] = {"tolerance": accuracy.tolerance, "relative_tolerance": accuracy.relative}
    return options if metric == "bisimulation" else options | {"policy_x": TIES[ties], "policy_y": TIES[ties]}


def _notes(result: MetricResult) -> tuple[str, ...]:
    notes = []
    if result.definition is not None and any(result.definition.tied_states):
        of_x, of_y = result.definition.tied_states
        notes.append(
            f"{of_x} states of x and {of_y} of y have several optimal actions; distances depend on the choice (--ties)"
        )
    if result.sampling is not None:
        bound, limit = result.sampling.error_bound, result.sampling.limit
        words = "nothing is certain with so few samples" if bound >= limit else f"of at most {limit:.3g}"
        notes.append(
            f"estimated MDPs: with probability {result.sampling.confidence:.0%} every distance is within {bound:.3g} "
            f"of the true one ({words}); pisces.metrics.bootstrap_metric gives narrower intervals"
        )
    return tuple(notes)


def is_mdp_file(path: Path) -> bool:
    """Returns whether an npz file holds the arrays of an MDP (as opposed to, say, a trajectory)."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = {Path(name).stem for name in archive.namelist()}
    except (zipfile.BadZipFile, RuntimeError):
        return False  # the loader says what is wrong with it
    return {"transitions", "rewards"} <= names or set(FILE_KEYS) <= names


class ErrorBar:
    """A progress bar that shows how many orders of magnitude the certified error still has to fall."""

    def __init__(self, tolerance: float | None) -> None:
        self._tolerance = tolerance
        self._first: float | None = None
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True)
        """The bar that is drawn."""
        self._task = self.bar.add_task("first round", total=1.0)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def update(self, rounds: int, error: float) -> None:
        """Moves the bar to an error."""
        # Without an absolute tolerance the error falls to about a millionth of the first one.
        target = self._tolerance or 1e-6 * (self._first or error or 1.0)
        self._first = self._first or max(error, 2 * target)
        done = 1 - math.log(max(error, target) / target) / math.log(self._first / target)
        self.bar.update(self._task, completed=max(0.0, done), description=f"round {rounds}, error {error:.1e}")


def compare_trajectories(
    x: Trajectory, y: Trajectory, discount: float, cost: str = "auto", last: Last | None = None
) -> MetricReport:
    """Measures the distances between the states of two trajectories.

    Args:
        x: one trajectory.
        y: another.
        discount: of the metric.
        cost: "total-variation" (discrete policies), "l1" (continuous actions), "reward" (pi-bisimulation), or "auto",
            which takes the policy similarity metric's cost for the kind of actions.
        last: what follows the last states; see `trajectory_metric`.
    """
    distance = trajectory_metric(x, y, discount, trajectory_cost(cost), last)
    sides = (_trajectory_side("x", x), _trajectory_side("y", y))
    return MetricReport(distance, "psm" if cost == "auto" else cost, sides=sides)


def trajectory_cost(name: str) -> TrajectoryCost:
    """Returns the cost between trajectories of a name; see `compare_trajectories`."""
    costs: dict[str, TrajectoryCost] = {
        "auto": behavior_cost,
        "total-variation": lambda x, y: total_variation(*_policies(x, y)),
        "l1": lambda x, y: l1_distance(*_actions(x, y)),
        "reward": lambda x, y: reward_difference(*_rewards(x, y)),
    }
    if name not in costs:
        raise unknown_name("cost", name, costs)
    return costs[name]


def _policies(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.policies is not None and y.policies is not None:
        return x.policies, y.policies
    return _actions(x, y)


def _actions(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.actions is None or y.actions is None:
        raise UserError("expected actions in both trajectories, or policies in both, got a mixture")
    return x.actions, y.actions


def _rewards(x: Trajectory, y: Trajectory) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    if x.rewards is None or y.rewards is None:
        raise UserError("expected rewards in both trajectories, got none in one of them")
    return x.rewards, y.rewards
