"""Tables of Distracting Control: Table 3, ours vs. paper, and training vs. unseen backgrounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.distracting.config import PRESETS, SIMILARITY, DistractingConfig
from pisces.experiments.distracting.gains import gain_table
from pisces.experiments.distracting.paper import DISTRACTING
from pisces.reports.results import StoredRun
from pisces.reports.tables import Cell, Table, escape_markdown, markdown

Source = tuple[str, str, str, str, str]
NAMES = {
    "sac": "SAC",
    "drq": "DrQ",
    "drq+randconv": "DrQ + RandConv",
    "drq+pse": "DrQ + PSEs",
    "drq+randconv+pse": "DrQ + RandConv + PSEs",
    "drqv2": "DrQ-v2",
    "drqv2+pse": "DrQ-v2 + PSEs",
}
RETURNS = (0.0, 1000.0)
"""An episode of the suite has 1000 steps with rewards between 0 and 1."""
NO_RUNS = "Not run yet.\n"
NOTE = (
    "{presets} The paper: 500,000 steps, frames of 84 pixels, 5 seeds, DAVIS videos. Ours / the paper's: mean, in "
    "parentheses the standard error, n = seeds, in brackets the 95 % CI of the mean. Hours do not include the "
    "pretraining run."
)


def cell_of(config: DistractingConfig) -> Source | None:
    """Returns what a run counts for in the tables: preset and videos, initialization, method, task; None if changed."""
    if config.changes or config.variant != "paper":
        return None
    scene = f"{config.preset}, DAVIS" if config.davis else config.preset
    return "distracting", scene, config.init, config.method, config.task


def by_cell(runs: Iterable[StoredRun]) -> dict[Source, list[StoredRun]]:
    """Returns the methods' own runs by cell, one per seed; larger presets first, then random initialization."""
    groups: dict[Source, dict[int, StoredRun]] = {}
    for run in runs:
        source = cell_of(run.config)
        if source is not None:
            groups.setdefault(source, {}).setdefault(run.config.seed, run)
    return {source: [groups[source][seed] for seed in sorted(groups[source])] for source in sorted(groups, key=_order)}


def _order(source: Source) -> tuple[Any, ...]:
    _, scene, init, method, task = source
    return list(PRESETS).index(scene.partition(",")[0]), scene, init != "random", method, task


def distracting_tables(runs: Iterable[StoredRun]) -> list[Table]:
    """All tables, if there are runs for them."""
    groups = by_cell(runs)
    if not groups:
        return []
    gains = gain_table(groups)
    return [table_3(groups), train_table(groups), *([gains] if gains else [])]


def table_3(groups: Mapping[Source, Sequence[StoredRun]]) -> Table:
    """Return on unseen backgrounds by initialization, method and task (Table 3)."""
    others = sorted({source[4] for source in groups} - set(PAPER_TASKS))
    rows: list[tuple[str | Cell, ...]] = []
    for scene in dict.fromkeys(source[1] for source in groups):
        extra = dict.fromkeys((source[2], source[3]) for source in groups if source[1] == scene)
        for init, method in dict.fromkeys([*DISTRACTING, *extra]):
            published = DISTRACTING.get((init, method), {})
            sources = [("distracting", scene, init, method, task) for task in (*PAPER_TASKS, *others)]
            cells = [_cell(groups, source, "test_return", published) for source in sources]
            rows.append((scene, init, NAMES.get(method, method), *cells, _hours(groups, sources)))
    header = ("preset", "initialization", "method", *PAPER_TASKS, *others, "hours per run, one core")
    note = NOTE.format(presets=_presets(groups))
    return Table("distracting", "Table 3: return on unseen backgrounds", note, header, tuple(rows))


def _cell(
    groups: Mapping[Source, Sequence[StoredRun]], source: Source, value: str, published: Mapping[str, Any] | None
) -> Cell:
    values = tuple(float(run[value]) for run in groups.get(source, ()))
    paper = (published or {}).get(source[4])
    return Cell(values, paper, "error", source=source, limits=RETURNS, digits=0, compared=published is not None)


def _hours(groups: Mapping[Source, Sequence[StoredRun]], sources: Iterable[Source]) -> str:
    """The mean time of the runs, without the pretraining that they share."""
    times = [run.seconds for source in sources for run in groups.get(source, ()) if run.seconds is not None]
    return f"{fmean(times) / 3600:.1f}" if times else "–"


def _presets(groups: Mapping[Source, Sequence[StoredRun]]) -> str:
    """Says in how many steps and pixels the runs of each preset differ from the paper's."""
    protocols = {source[1]: runs[0].config.protocol for source, runs in groups.items()}
    texts = [f"{name}: {p.steps:,} steps, frames of {p.frame_size} pixels" for name, p in protocols.items()]
    return f"Preset {'; '.join(texts)}."


def train_table(groups: Mapping[Source, Sequence[StoredRun]]) -> Table:
    """Return on the training backgrounds beside that on unseen ones."""
    rows: list[tuple[str | Cell, ...]] = []
    for source in groups:
        cells = [_cell(groups, source, value, None) for value in ("train_return", "test_return")]
        rows.append((source[1], source[2], NAMES.get(source[3], source[3]), source[4], *cells))
    note = f"{_presets(groups)} Mean, in parentheses the standard error, n = seeds, in brackets the 95 % CI."
    header = ("preset", "initialization", "method", "task", "training backgrounds", "unseen backgrounds")
    return Table("distracting_train", "Distracting Control: training and unseen backgrounds", note, header, tuple(rows))


def distracting_markdown(runs: Iterable[StoredRun], name: str = "distracting") -> str:
    """One of the tables for a document, in Markdown, or a line that says that there are no runs."""
    for table in distracting_tables(runs):
        if table.name == name:
            return f"{table.note}\n\n{table.body()}"
    return NO_RUNS


def plain_markdown(runs: Iterable[StoredRun]) -> str:
    """The undistracted task along training, every second evaluation, and at the end: what the agent can do at best."""
    rows = []
    for run in runs:
        config = run.config
        if config.variant == "plain" and run.curve:
            along = ", ".join(f"{row['step']:,}: {row['test_return']:.0f}" for row in run.curve[1::2])
            method = NAMES.get(config.method, config.method)
            changes = ", ".join(f"{name}={value}" for name, value in config.changes.items())
            words = [config.preset, method, changes or "–", config.task, str(config.seed), along]
            rows.append([*map(escape_markdown, words), f"**{run['test_return']:.0f}**"])
    header = ["preset", "method", "changes", "task", "seed", "return after so many steps", "at the end"]
    return markdown(header, rows) if rows else NO_RUNS


def cost_markdown(runs: Iterable[StoredRun]) -> str:
    """Compute cost: hours of a run with the runs that it needs, and the unseen return per hour."""
    groups = by_cell(runs)
    rows = []
    for source, own in groups.items():
        plain = (*source[:2], "random", source[3].removesuffix(SIMILARITY), source[4])
        first = {run.config.seed: run.seconds for run in groups.get(plain, ())}
        hours, returns = [], []
        for run in own:
            before = first.get(run.config.seed) if run.config.needs_pretraining else 0.0
            if run.seconds is not None and before is not None:
                hours.append((run.seconds + before) / 3600)
                returns.append(float(run["test_return"]))
        if hours:
            total = fmean(hours)
            words = [source[1], source[2], NAMES.get(source[3], source[3]), source[4], str(len(hours))]
            rows.append([*map(escape_markdown, words), f"{total:.1f}", f"{fmean(returns) / total:.0f}"])
    header = ["preset", "initialization", "method", "task", "seeds", "hours", "unseen return per hour"]
    return markdown(header, rows) if rows else NO_RUNS


def alignment_markdown(runs: Iterable[StoredRun]) -> str:
    """What explains the returns: the policy behind the pairs, the loss, and whether agents see through backgrounds."""
    rows = []
    for source, own in by_cell(runs).items():
        measured = [run["alignment"] for run in own if "alignment" in run]
        if not measured:
            continue
        found = [fmean(m[videos]["found_percent"] for m in measured) for videos in ("train", "test")]
        differ = [fmean(m[videos]["action_difference"] for m in measured) for videos in ("train", "test")]
        losses = [[row["auxiliary_loss"] for row in run.curve if "auxiliary_loss" in row] for run in own]
        texts = [curve for curve in losses if curve]
        loss = f"{fmean(c[0] for c in texts):.2f} → {fmean(c[-1] for c in texts):.2f}" if texts else "–"
        pairs = [run["pair_return"] for run in own if "pair_return" in run]
        name = NAMES.get(source[3], source[3])
        rows.append(
            [source[1], source[2], name, source[4], str(len(measured)), f"{fmean(pairs):.0f}" if pairs else "–", loss,
             f"{found[0]:.0f} / {found[1]:.0f}", f"{differ[0]:.2f} / {differ[1]:.2f}"]
        )  # fmt: skip
    header = [
        *("preset", "initialization", "method", "task", "seeds", "return of the pairs' policy"),
        *("loss, first → last evaluation interval", "same state found (%)", "actions differ by"),
    ]
    return markdown(header, [list(map(escape_markdown, row)) for row in rows]) if rows else NO_RUNS
