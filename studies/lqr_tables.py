"""Tables and the figure of the LQR ablation: optimizers, coefficients, numbers of environments, sparsity, moments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from lqr_ablation import DISTRACTORS, SLOWEST
from lqr_moments import EARLY, FILE, LATE
from pisces.experiments.lqr.config import FIRST_TUNING_SEED, LQRConfig
from pisces.reports.figures import LINE_COLORS
from pisces.reports.results import StoredRun
from pisces.reports.tables import markdown

OPTIMIZERS = ("gradient-descent", "momentum", "adam")
NO_COEFFICIENT = 10.0
"""Where a logarithmic axis shows the coefficient 0."""

Points = dict[tuple[str, float, int], tuple[float, float, float]]


def ablation_points(runs: Iterable[StoredRun]) -> Points:
    """Returns mean test error, |K_d| and |K_s| of the cells by optimizer, coefficient and number of environments."""
    cells: dict[tuple[str, float, int], list[StoredRun]] = {}
    for run in runs:
        config, settings = run.config, run.config.settings
        if _in_ablation(config, "psm") and (settings.optimizer != "adam" or settings.precision == "float32"):
            cells.setdefault((settings.optimizer, settings.aggregation, config.environments), []).append(run)
    return {
        key: (_mean(own, "error"), _mean(own, "distractor_norm"), _mean(own, "state_norm"))
        for key, own in cells.items()
    }


def _in_ablation(config: LQRConfig, method: str) -> bool:
    tuning = config.seed >= FIRST_TUNING_SEED and config.preset == "paper"
    return tuning and config.method == method and config.distractors == DISTRACTORS


def ablation_figure(runs: Iterable[StoredRun]) -> Figure:
    """Error and |K_d| over the coefficient, and error over the number of training environments."""
    points = ablation_points(runs)
    figure = Figure(figsize=(10.2, 3.4), layout="constrained")
    error, norm, environments = figure.subplots(1, 3)
    # Gradient descent lies on momentum nearly everywhere: dashes let both be seen.
    for color, optimizer, style in zip(LINE_COLORS, OPTIMIZERS, ("-", "--", "-"), strict=False):
        own = sorted((c, values) for (name, c, count), values in points.items() if name == optimizer and count == 2)
        places = [c or NO_COEFFICIENT for c, _ in own]
        error.plot(places, [values[0] for _, values in own], color=color, linestyle=style, marker="o", label=optimizer)
        norm.plot(places, [values[1] for _, values in own], color=color, linestyle=style, marker="o", label=optimizer)
    largest = max((c for name, c, count in points if name == "adam" and count > 2), default=0.0)
    lines = (
        ("adam", 0.0, "adam, no aggregation", "#777777"),
        ("momentum", SLOWEST, f"momentum, {SLOWEST:.0e}", LINE_COLORS[1]),
        ("adam", largest, f"adam, {largest:.0e}", LINE_COLORS[2]),
    )
    for optimizer, coefficient, label, color in lines:
        counts = sorted(count for name, c, count in points if (name, c) == (optimizer, coefficient))
        values = [points[optimizer, coefficient, count][0] for count in counts]
        environments.plot(counts, values, color=color, marker="o", label=label)
    _finish_axes(error, norm, environments)
    return figure


def _finish_axes(error: Any, norm: Any, environments: Any) -> None:
    for axes in (error, norm):
        axes.set_xscale("log")
        axes.set_xlabel("aggregation coefficient (leftmost: 0)")
    for axes, label in ((error, "error, unseen environment"), (norm, "|K| of the distractors' columns")):
        axes.set_ylabel(label)
    environments.set_xlabel("training environments")
    environments.set_ylabel("error, unseen environment")
    for axes in (error, norm, environments):
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)


def ablation_table(runs: Iterable[StoredRun]) -> str:
    """The figure's numbers: error, |K_d| and |K_s| of every optimizer, coefficient and number of environments."""
    rows = []
    for (optimizer, coefficient, count), (error, distractors, states) in sorted(ablation_points(runs).items()):
        numbers = (f"{error:.4f}" if error < 0.1 else f"{error:.1f}", f"{distractors:.2f}", f"{states:.2f}")
        rows.append([optimizer, f"{coefficient:.0e}" if coefficient else "0", str(count), *numbers])
    return markdown(["optimizer", "coefficient", "environments", "error", "\\|K_d\\|", "\\|K_s\\|"], rows)


def sparsity_table(runs: Iterable[StoredRun]) -> str:
    """Errors of the l1 baseline by its coefficient."""
    cells: dict[float, list[StoredRun]] = {}
    for run in runs:
        if _in_ablation(run.config, "l1"):
            cells.setdefault(run.config.settings.sparsity, []).append(run)
    names = ("train_error", "validation_error", "error")
    rows = [[f"{value:.0e}", *(f"{_mean(cells[value], name):.3g}" for name in names)] for value in sorted(cells)]
    return markdown(["coefficient", "training", "validation", "test"], rows)


def moments_table(root: Path) -> str:
    """What Adam remembers of the aggregation loss, as `lqr_moments.py` measured it."""
    path = root / "lqr" / FILE
    if not path.is_file():
        return "Not measured yet.\n"
    content = json.loads(path.read_text())
    rows = []
    for row in content["rows"]:
        coefficient = f"{row['coefficient']:.0e}" if row["coefficient"] else "0"
        roots = " / ".join(f"{root:.2g}" if root < 100 else f"{root:,.0f}" for root in row["roots"])
        moved = " / ".join(f"{distance:.4f}" for distance in row["moved"])
        norms = " / ".join(f"{norm:.2g}" for norm in row["norms"])
        rows.append([coefficient, roots, moved, norms])
    header = [
        "coefficient",
        f"root of Adam's second moment after {EARLY} steps: state / distractors",
        f"weights moved after {EARLY} steps: state / distractors",
        f"\\|K_s\\| / \\|K_d\\| after {LATE} steps",
    ]
    seeds = content["seeds"]
    return f"{content['distractors']} distractors, mean over {len(seeds)} seeds.\n\n{markdown(header, rows)}"


def _mean(runs: Iterable[StoredRun], name: str) -> float:
    return mean(float(run[name]) for run in runs)
