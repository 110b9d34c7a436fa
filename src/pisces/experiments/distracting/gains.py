"""What PSEs change: differences between runs of one seed with and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.distracting.config import SIMILARITY
from pisces.experiments.distracting.paper import DISTRACTING
from pisces.reports.results import StoredRun
from pisces.reports.statistics import Scores, bootstrap_interval, mean
from pisces.reports.tables import Cell, Table

Source = tuple[str, str, str, str, str]
DIFFERENCES = (-1000.0, 1000.0)
GAP_CHANGES = (-2000.0, 2000.0)
"""Limits of a difference of returns, and of one of two differences."""
NOTE = (
    "Seeds that were trained both ways. Differences are paired by seed: mean, in parentheses the standard error, n = "
    "seeds, in brackets the 95 % CI. The gap is the return on training backgrounds minus that on unseen ones; the "
    "share that is closed is given where the gap is at least a fifth of the return on training backgrounds; a negative "
    "share means that it grew."
)
SMALL_GAP = 0.2
"""Share of the return on training backgrounds; of a smaller gap, mostly noise, no share that is closed is given."""
AVERAGE_NOTE = (
    " Last row: differences in percent of the paper's DrQ, a mean over tasks with two or more seeds; stratified "
    "bootstrap."
)


@dataclass(frozen=True)
class Gain:
    """The runs of one task without and with PSEs, seed by seed."""

    scene: str
    """Preset and videos."""
    init: str
    """Initialization."""
    method: str
    """The method without PSEs."""
    task: str
    """The task."""
    pairs: tuple[tuple[StoredRun, StoredRun], ...]
    """The runs of each seed, without and with PSEs."""

    def differences(self) -> tuple[float, ...]:
        """Return on unseen backgrounds with PSEs minus that without, by seed."""
        return tuple(float(ours["test_return"]) - float(plain["test_return"]) for plain, ours in self.pairs)

    def gap_changes(self) -> tuple[float, ...]:
        """By how much PSEs narrow the gap between training and unseen backgrounds, by seed."""
        return tuple(_gap(plain) - _gap(ours) for plain, ours in self.pairs)

    def gap_closed(self) -> float | None:
        """The share of the gap between training and unseen backgrounds that PSEs close; None if the gap is small."""
        first, second = (fmean(map(_gap, side)) for side in self.sides())
        train = fmean(float(plain["train_return"]) for plain, _ in self.pairs)
        return 1 - second / first if first > 0 and first >= SMALL_GAP * train else None

    def sides(self) -> tuple[tuple[StoredRun, ...], ...]:
        """The runs without PSEs, and those with them."""
        return tuple(zip(*self.pairs, strict=True))


def _gap(run: StoredRun) -> float:
    return float(run["train_return"]) - float(run["test_return"])


def find_gains(groups: Mapping[Source, Sequence[StoredRun]]) -> list[Gain]:
    """Pairs the runs with PSEs with those of the same seed without."""
    gains = []
    for source, runs in groups.items():
        name, scene, init, method, task = source
        if method.endswith(SIMILARITY):
            base = method.removesuffix(SIMILARITY)
            plain = {run.config.seed: run for run in groups.get((name, scene, init, base, task), ())}
            pairs = tuple((plain[run.config.seed], run) for run in runs if run.config.seed in plain)
            if pairs:
                gains.append(Gain(scene, init, base, task, pairs))
    return gains


def gain_table(groups: Mapping[Source, Sequence[StoredRun]]) -> Table | None:
    """Differences by task, and their mean over tasks; None if no seed was trained both ways."""
    gains = find_gains(groups)
    rows: list[tuple[str | Cell, ...]] = []
    note = NOTE
    for key in dict.fromkeys((gain.scene, gain.init, gain.method) for gain in gains):
        own = [gain for gain in gains if (gain.scene, gain.init, gain.method) == key]
        rows += [_row(gain) for gain in own]
        average = average_gain(own)
        if average:
            note = NOTE + AVERAGE_NOTE
            rows.append((*key, "mean, in % of the paper's DrQ", "", "", average, "", ""))
    header = (
        *("preset", "initialization", "method", "task", "training / unseen", "with PSEs: training / unseen"),
        *("difference on unseen", "gap narrowed by", "gap closed"),
    )
    title = "Distracting Control: what PSEs change"
    return Table("distracting_gains", title, note, header, tuple(rows)) if rows else None


def _row(gain: Gain) -> tuple[str | Cell, ...]:
    returns = [
        " / ".join(f"{fmean(float(run[value]) for run in side):.0f}" for value in ("train_return", "test_return"))
        for side in gain.sides()
    ]
    cells = [
        Cell(values, None, "error", limits=limits, digits=0, compared=False)
        for values, limits in ((gain.differences(), DIFFERENCES), (gain.gap_changes(), GAP_CHANGES))
    ]
    closed = gain.gap_closed()
    text = "–" if closed is None else f"{100 * closed:.0f} %"
    return gain.scene, gain.init, gain.method, gain.task, *returns, *cells, text


def average_gain(gains: Sequence[Gain]) -> str | None:
    """Mean over two or more tasks of the differences in percent of the paper's DrQ, with its interval."""
    percent = {
        gain.task: tuple(100 * value / DISTRACTING["random", "drq"][gain.task].mean for value in gain.differences())
        for gain in gains
        if gain.task in PAPER_TASKS and len(gain.pairs) > 1
    }
    if len(percent) < 2:
        return None
    scores = Scores(percent)
    interval = bootstrap_interval(scores, mean)
    return f"**{mean(scores):.1f}**, {len(percent)} tasks [{interval.low:.1f}, {interval.high:.1f}]"
