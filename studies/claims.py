"""The paper's claims, and every number that differs from the paper's by more than two standard errors.

Verdicts come from the stored results. Explanations are texts of this file; where no experiment supports one, it is
"unexplained".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from jumping_meta import ReptileSettings, meta_values
from jumping_tables import paired_differences, variant_values
from jumping_variants import Variant
from lqr_tables import ablation_points
from pisces.experiments.distracting.gains import DIFFERENCES, average_gain, find_gains
from pisces.experiments.distracting.tables import by_cell
from pisces.experiments.jumping.paper import JUMPING, JUMPING_COLORS
from pisces.experiments.jumping.report.tables import METHOD_NAMES, published_changes
from pisces.experiments.lqr.paper import LQR
from pisces.experiments.lqr.tables import errors_of, seeds_by_cell
from pisces.experiments.published import Published
from pisces.reports.results import StoredRun, StoredRuns
from pisces.reports.tables import Cell, markdown

PAPER_RUNS = 100
FAR = 2.0
"""Standard errors from which on two means differ."""
SLIGHT = 2.0
"""Points above the paper's plain imitation that count as no gain."""
FEW = 5
"""Fewer seeds than these give no verdict."""
UNEXPLAINED = "unexplained"
Runs = Sequence[StoredRun]
TEST = "test_solved_percent"
DESCENT = ("gradient-descent", 1e2, 2)
"""Optimizer, coefficient and environments of the conjecture."""


@dataclass(frozen=True)
class Gain:
    """A claim that one variant solves more unseen tasks than another."""

    text: str
    """The claim."""
    worse: Variant
    """The variant that should solve fewer."""
    better: Variant
    """The variant that should solve more."""
    value: str = TEST
    """What is compared."""
    colors: bool = False
    """Whether obstacles are red and green."""
    page: str = ""
    """The section with the table."""

    def row(self, runs: Runs) -> list[str]:
        """Claim, finding and evidence."""
        more = paired_differences(runs, self.worse, self.better, self.value, self.colors)
        cell = Cell(more, limits=(-100.0, 100.0))
        evidence = f"difference on the same seeds, in points: {cell.ours()}" if more else "no runs"
        sides = [variant_values(runs, side, self.value, self.colors) for side in (self.better, self.worse)]
        if more and max(map(len, sides)) > len(more):
            evidence += f"; means of all seeds {' and '.join(f'{fmean(side):.1f} (n={len(side)})' for side in sides)}"
        return [self.text, verdict(more), f"{evidence} ([table]({self.page}))"]


def verdict(differences: Sequence[float], limits: tuple[float, float] = (-100.0, 100.0)) -> str:
    """Whether differences confirm a gain: their 95 % CI lies above zero, below it or around it."""
    if len(differences) < FEW:
        return "too few seeds" if differences else "not run"
    interval = Cell(tuple(differences), limits=limits).interval(0.95)
    assert interval is not None
    if interval[0] > 0:
        return "confirmed"
    return "opposite" if interval[1] < 0 else "not significant"


def _grid(method: str, grid: str = "wide") -> Variant:
    return Variant("", method, {}, grid)


GAINS: Sequence[Gain] = (
    *(
        Gain(
            f"PSEs add to RandConv, {grid} grid", _grid("randconv", grid), _grid("randconv+pse", grid), page="#table-1"
        )
        for grid in ("wide", "narrow", "random")
    ),
    *(
        Gain(
            f"PSEs help without augmentation, {grid} grid",
            _grid("dropout+l2", grid),
            _grid("pse", grid),
            page="#table-1",
        )
        for grid in ("wide", "narrow", "random")
    ),
    Gain(
        "PSM is better embedded by CMEs than by l2",
        _grid("randconv+psm-l2"),
        _grid("randconv+psm-cme"),
        page="#table-2-metric-and-embedding",
    ),
    Gain(
        "PSM generalizes better than π*-bisimulation, both with CMEs",
        _grid("randconv+pi-bisimulation-cme"),
        _grid("randconv+psm-cme"),
        page="#table-2-metric-and-embedding",
    ),
    Gain(
        "RandConv alone is better than with π*-bisimulation",
        _grid("randconv+pi-bisimulation"),
        _grid("randconv"),
        page="#table-1",
    ),
    *(
        Gain(
            f"With colors, PSEs solve more red tasks{name}",
            Variant("", "dropout+l2", changes("dropout+l2")),
            Variant("", "pse", changes("pse")),
            "red_test_solved_percent",
            True,
            "#the-task-with-colors",
        )
        for name, changes in ((", our network", lambda method: {}), (", the published network", published_changes))
    ),
)


def epsilon_row(runs: Runs) -> list[str]:
    """Robustness to suboptimal policies, with the policies' own transitions."""
    text = "PSEs tolerate a metric of ε-suboptimal policies, ε up to 0.4 (the policies' own transitions)"
    changes = {"epsilon": 0.4, "metric": "psm-mdp"}
    lost = paired_differences(runs, _grid("randconv+pse"), Variant("", "randconv+pse", changes), TEST)
    found = "not run" if not lost else "too few seeds" if len(lost) < FEW else f"{fmean(lost):+.1f} points"
    return [text, found, f"n={len(lost)} ([table](#suboptimal-policies))"]


def meta_row(root: Path) -> list[str]:
    """Meta-learning on the wide grid."""
    values = meta_values(root, TEST)
    interval = Cell(values).interval(0.95) if len(values) >= FEW else None
    limit = JUMPING["dropout+l2"]["wide"].mean + SLIGHT
    found = "not run" if not values else "too few seeds"
    if interval is not None:
        found = "confirmed" if interval[1] < limit else "opposite" if interval[0] > limit else "not decided"
    text = f"Meta-learning does not solve unseen tasks (Reptile, {ReptileSettings.iterations:,} iterations)"
    return [text, found, f"{Cell(values).ours()} ([table](#meta-learning))" if values else "no runs"]


def lqr_rows(runs: Runs) -> list[list[str]]:
    """Aggregation in linear control, and the conjecture about gradient descent."""
    page = "lqr.md#why-aggregation-removes-the-distractors"
    cells = seeds_by_cell(runs)
    own, other = (errors_of(cells.get((method, 500), [])) for method in ("psm", "overparametrized"))
    found = "not run" if not own or not other else "confirmed" if max(own) < min(other) else "not confirmed"
    evidence = (
        f"largest error with aggregation {max(own):.2g} (n={len(own)}), smallest without {min(other):.3g}"
        if own and other
        else "no runs"
    )
    first = [
        "LQR: PSM aggregation generalizes, the overparametrized policy does not",
        found,
        f"{evidence} ([table](lqr.md))",
    ]
    points = [value for (name, c, count), value in ablation_points(runs).items() if (name, c, count) == DESCENT]
    norm = points[0][1] if points else None
    kept = "not run" if norm is None else "refuted" if norm > 1 else "confirmed"
    shown = "no runs" if norm is None else f"\\|K_d\\| = {norm:.2f} at the end, 5 seeds"
    return [
        first,
        [
            "LQR: gradient descent on an aggregated policy gives K_d = 0 (no weight on distractors)",
            kept,
            f"{shown} ([table]({page}))",
        ],
    ]


def distracting_rows(runs: Runs) -> list[list[str]]:
    """PSEs in Distracting Control, task by task."""
    rows = []
    for gain in find_gains(by_cell(runs)):
        if (gain.method, gain.init) == RANDOM_DRQ:
            more = gain.differences()
            cell = Cell(more, None, "error", limits=DIFFERENCES, digits=0)
            evidence = f"difference of returns on the same seeds: {cell.ours()} ([table](distracting.md#results))"
            text = f"Distracting Control: PSEs raise DrQ's return on unseen videos, {gain.task}"
            rows.append([text, verdict(more, DIFFERENCES), evidence])
    return rows


RANDOM_DRQ = ("drq", "random")
"""The method and the initialization whose gains are claims."""
FINDINGS: Mapping[str, str] = {
    "confirmed": "PSEs raise the return on unseen videos on {tasks}: the 95 % CI of the difference lies above zero.",
    "opposite": "They lower it on {tasks}: the CI lies below zero.",
    "not significant": "The difference is not significant on {tasks}.",
    "too few seeds": "Fewer than five seeds, too few for a verdict, were run on {tasks}.",
}
"""Verdict -> sentence."""


def distracting_summary(runs: StoredRuns, root: Path) -> str:
    """What PSEs change in Distracting Control, in a sentence per verdict."""
    found: dict[str, list[str]] = {}
    gains = [gain for gain in find_gains(by_cell(runs.of("distracting"))) if (gain.method, gain.init) == RANDOM_DRQ]
    for gain in gains:
        more = gain.differences()
        words = f"{gain.task} ({len(more)} {'seed' if len(more) == 1 else 'seeds'}, {fmean(more):+.0f} on average)"
        found.setdefault(verdict(more, DIFFERENCES), []).append(words)
    lines = [text.format(tasks=", ".join(found[name])) for name, text in FINDINGS.items() if name in found]
    average = average_gain(gains)
    if average:
        lines.append(
            f"Mean over tasks with two or more seeds, in percent of the paper's DrQ, with a bootstrap CI: {average}."
        )
    return " ".join(lines) + "\n" if lines else "Not run yet.\n"


def claims_table(runs: StoredRuns, root: Path) -> str:
    """Claim of the paper, what we found, and the evidence."""
    jumping = runs.of("jumping")
    rows = [gain.row(jumping) for gain in GAINS]
    rows += [epsilon_row(jumping), meta_row(root), *lqr_rows(runs.of("lqr")), *distracting_rows(runs.of("distracting"))]
    return markdown(["claim of the paper", "what we found", "evidence"], rows)


def linked_claims(runs: StoredRuns, root: Path) -> str:
    """The same table for README: links lead to the documentation."""
    text = claims_table(runs, root).replace("](#", "](docs/reproduction.md#")
    return text.replace("](lqr.md", "](docs/lqr.md").replace("](distracting.md", "](docs/distracting.md")


@dataclass(frozen=True)
class Compared:
    """A number of ours and the paper's."""

    where: str
    """The cell."""
    values: tuple[float, ...]
    """Ours, one per seed."""
    published: Published
    """The paper's."""
    published_error: float
    """Standard error of the paper's."""
    explanation: str = UNEXPLAINED
    """The experiment behind the difference."""

    @property
    def distance(self) -> float:
        """Difference of the means in standard errors, with sign, beyond what the paper's rounding explains.

        It is 0 if there are no two seeds.
        """
        if len(self.values) < 2:
            return 0.0
        error = math.hypot(stdev(self.values) / math.sqrt(len(self.values)), self.published_error)
        difference = fmean(self.values) - self.published.mean
        beyond = max(abs(difference) - 0.5 * 10**-self.published.digits, 0.0)
        return math.copysign(beyond / error if error else math.inf if beyond else 0.0, difference)


def compared_cells(runs: StoredRuns) -> Iterable[Compared]:
    """All cells of the paper's tables that have runs."""
    jumping, lqr = runs.of("jumping"), seeds_by_cell(runs.of("lqr"))
    for method, grids in JUMPING.items():
        for grid, published in grids.items():
            values = variant_values(jumping, _grid(method, grid), TEST)
            error = published.deviation / math.sqrt(PAPER_RUNS)
            where = f"{METHOD_NAMES.get(method, method)}, {grid} grid"
            yield Compared(where, values, published, error, EXPLANATIONS.get((method, grid), UNEXPLAINED))
    for method, colors in JUMPING_COLORS.items():
        for color, published in colors.items():
            values, theirs = (
                variant_values(jumping, Variant("", method, changes), f"{color}_{TEST}", colors=True)
                for changes in ({}, published_changes(method))
            )
            where = f"{METHOD_NAMES[method]}, {color} tasks, our network"
            yield Compared(where, values, published, published.deviation, network_explanation(theirs))
    for method, sizes in LQR.items():
        for size, published in sizes.items():
            values = tuple(errors_of(lqr.get((method, size), [])))
            error = published.deviation / math.sqrt(PAPER_RUNS)
            explained = EXPLANATIONS.get(("lqr", method), UNEXPLAINED)
            yield Compared(f"LQR, `{method}`, {size} distractors", values, published, error, explained)


EXPLANATIONS: Mapping[tuple[str, str], str] = {
    ("bisimulation-transfer", "random"): "fits grids with about nine positions, which the text does not describe: "
    "[100 grids](#bisimulation-transfer-on-random-grids); why is unexplained",
    ("lqr", "l1"): "the paper's is the error of doing nothing, which larger coefficients give: "
    "[coefficients](lqr.md#where-we-differ-from-the-paper)",
    ("lqr", "psm"): "depends on the coefficient, which the paper does not state: "
    "[coefficients](lqr.md#why-aggregation-removes-the-distractors)",
    ("lqr", "ipo"): "about 3000 steps without early stopping give the paper's: "
    "[curves](lqr.md#ipo-by-the-number-of-training-steps)",
}
"""(method, grid) or ("lqr", method) -> the experiment behind the difference."""


def network_explanation(values: Sequence[float]) -> str:
    """What the published network and kernels give on the task with colors."""
    given = f"{fmean(values):.1f}, n={len(values)}" if values else "not run"
    return f"unexplained; with the published network and kernels {given}: [variants](#the-task-with-colors)"


def disagreements_table(runs: StoredRuns, root: Path) -> str:
    """Every cell of the paper's tables that we differ from by more than two standard errors."""
    rows = []
    for cell in compared_cells(runs):
        if abs(cell.distance) > FAR:
            ours = f"{fmean(cell.values):.{1 if fmean(cell.values) >= 0.1 else 4}f}, n={len(cell.values)}"
            far = f"{cell.distance:+.1f}" if abs(cell.distance) < 100 else "more than 100"
            rows.append([cell.where, ours, str(cell.published), far, cell.explanation])
    return markdown(["cell", "ours", "paper", "standard errors", "explanation"], rows)


COMBINED: Mapping[str, Callable[[StoredRuns, Path], str]] = {
    "claims": claims_table,
    "claims_linked": linked_claims,
    "disagreements": disagreements_table,
    "distracting-summary": distracting_summary,
}
"""Tables of several experiments; see `fill_docs.py`."""
