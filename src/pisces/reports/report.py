"""`pisces report`: tables, figures and the page of the runs in some folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pisces.errors import UserError, unknown_name
from pisces.experiments.store import write_atomically
from pisces.reports import result_figures, task_figures
from pisces.reports.diagnosis import RunDiagnosis, diagnose_run, diagnosis_csv, diagnosis_markdown
from pisces.reports.distracting import curve_figures, distracting_tables
from pisces.reports.embeddings import PROJECTIONS, Embedding, embed_run, embedding_figure, has_umap
from pisces.reports.explorer import explorer_page, label_of, page_data, run_label, settings_of
from pisces.reports.grid import grid_table
from pisces.reports.jumping_tables import (
    METHOD_NAMES,
    aggregate_table,
    color_series,
    epsilon_scores,
    grid_scores,
    jumping_tables,
    own_source,
)
from pisces.reports.lqr import error_bars, group_lqr, lqr_report_table
from pisces.reports.results import StoredRun, StoredRuns, read_runs
from pisces.reports.tables import Table

EMBEDDED = 6
"""At most this many settings are embedded, one run of each: embeddings make up most of the page's size."""
TOLD = 20
"""At most this many skipped files are named one by one."""


@dataclass(frozen=True)
class Written:
    """What a report wrote."""

    page: Path
    """The page."""
    files: tuple[Path, ...]
    """Tables and figures."""
    notes: tuple[str, ...]
    """What was left out, and why."""


def write_report(roots: Sequence[Path], out: Path, projection: str = "umap", mixed_versions: bool = False) -> Written:
    """Writes tables, figures and the page of all finished runs below some folders.

    Args:
        roots: folders with runs; a run that lies in several of them counts once.
        out: where to write.
        projection: "umap" or "pca" for the embeddings of runs with checkpoints, "none" to leave them out.
        mixed_versions: accept runs of several versions of pisces.
    """
    if projection not in PROJECTIONS:
        raise unknown_name("projection", projection, PROJECTIONS)
    if out.exists() and not out.is_dir():
        raise UserError(f"expected an output folder, got {str(out)!r}, which is a file")
    runs = _usable_runs(roots, mixed_versions)
    notes = [f"Left out, and left alone: {line}" for line in runs.skipped[:TOLD]]
    notes += [f"Left out: {len(runs.skipped) - TOLD} more files"] if len(runs.skipped) > TOLD else []
    if len(runs.versions()) > 1:
        notes.append(f"Runs of several versions of pisces: {_versions(runs)}")
    tables = _tables(runs)
    embeddings = _embeddings(runs, projection, notes)
    diagnoses = _diagnoses([run for run, _ in embeddings], notes)
    figures = _figures(runs, embeddings)
    page = out / "report.html"
    shown = {caption: figure for name, (caption, figure) in figures.items() if not name.startswith("solved_")}
    text = explorer_page(runs, page_data(runs, tables, embeddings, diagnoses), notes, shown)
    try:
        files = [*_write_tables(tables, _other_tables(runs, diagnoses), out), *_write_figures(figures, out)]
        _write(page, text)
    except OSError as error:
        raise UserError(f"expected a folder that can be written to, got {str(out)!r}: {error.strerror}") from error
    return Written(page, tuple(files), tuple(notes))


def _usable_runs(roots: Sequence[Path], mixed_versions: bool) -> StoredRuns:
    if not roots:
        raise UserError("expected at least one folder of runs, got none: pisces report runs --out report")
    runs = read_runs(roots)
    named = ", ".join(map(str, roots))
    if not runs.runs:
        skipped = f"; {len(runs.skipped)} unusable result files, e.g. {runs.skipped[0]}" if runs.skipped else ""
        raise UserError(f"expected finished runs below {named}, got none{skipped}")
    if len(runs.versions()) > 1 and not mixed_versions:
        raise UserError(
            f"expected runs of one version of pisces below {named}, got {_versions(runs)}; report on their folders "
            "one by one, or add --mixed-versions"
        )
    return runs


def _versions(runs: StoredRuns) -> str:
    return ", ".join(f"{version} ({count} runs)" for version, count in runs.versions().items())


def _embeddings(runs: StoredRuns, projection: str, notes: list[str]) -> list[tuple[StoredRun, Embedding]]:
    """Embeds one run of each setting that has a checkpoint; what can't be done becomes a note."""
    groups = [[run for run in group if run.has_checkpoint] for group in settings_of(runs)]
    chosen = [group[0] for group in groups if group and group[0].experiment == "jumping"]
    if projection == "none":
        return []
    if not chosen:
        notes.append("No jumping run has its checkpoint here: embeddings and learned similarities are left out.")
        return []
    if projection == "umap" and not has_umap():
        notes.append("Embeddings are drawn by PCA, not UMAP, which needs an extra: pip install 'pisces-rl[report]'")
        projection = "pca"
    if len(chosen) > EMBEDDED:
        notes.append(f"Embeddings of {EMBEDDED} settings are shown; {len(chosen) - EMBEDDED} more have checkpoints.")
    embedded = []
    for run in chosen[:EMBEDDED]:
        try:
            embedded.append((run, embed_run(run, projection)))
        except UserError as error:
            notes.append(f"Not embedded: {error}")
    return embedded


def _diagnoses(runs: Sequence[StoredRun], notes: list[str]) -> list[tuple[str, RunDiagnosis]]:
    """Looks for where the embedded runs break; what can't be done becomes a note."""
    found = []
    for run in runs:
        try:
            found.append((run_label(run), diagnose_run(run)))
        except UserError as error:
            notes.append(f"Not diagnosed: {error}")
    return found


def _figures(runs: StoredRuns, embeddings: Sequence[tuple[StoredRun, Embedding]]) -> dict[str, tuple[str, Figure]]:
    """The figures whose data are there: file stem -> caption and figure."""
    figures = _other_figures(runs)
    if not runs.of("jumping"):
        return figures
    figures |= _result_figures([run.result for run in runs.of("jumping")], settings_of(runs))
    drawn: Mapping[str, tuple[str, Callable[[], Figure]]] = {
        "metrics": ("What metrics say of the states of two tasks (discount 0.99)", task_figures.metric_maps),
        "randconv": ("RandConv on white, red and green obstacles", task_figures.randconv_samples),
        "trajectories": ("Optimal episodes; blocks brighten with time", task_figures.trajectories),
        "validation": ("Training and validation tasks of the wide grid", task_figures.validation_map),
    }
    figures |= {name: (caption, draw()) for name, (caption, draw) in drawn.items()}
    if embeddings:
        named = [(run_label(run), embedding) for run, embedding in embeddings]
        caption = "Embedded states: colours are tasks, numbers distances to the obstacle"
        figures["embeddings"] = (caption, embedding_figure(named))
    return figures


def _tables(runs: StoredRuns) -> list[Table]:
    """The tables that have at least one run of ours."""
    jumping, lqr, distracting = ([run.result for run in runs.of(name)] for name in ("jumping", "lqr", "distracting"))
    tables = [*jumping_tables(jumping), lqr_report_table(_whole(lqr)), *distracting_tables(distracting)]
    return [table for table in tables if table.filled]


def _other_figures(runs: StoredRuns) -> dict[str, tuple[str, Figure]]:
    """Figures of linear control and Distracting Control."""
    figures = curve_figures(run.result for run in runs.of("distracting"))
    linear = _whole(run.result for run in runs.of("lqr"))
    if group_lqr(linear):
        caption = "Linear control: error in an unseen environment, 99 % intervals; black lines are the paper's means"
        figures["lqr"] = (caption, error_bars(linear))
    return figures


def _whole(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [result for result in results if "runs" in result]


def _result_figures(
    results: Sequence[Mapping[str, Any]], groups: Sequence[Sequence[StoredRun]]
) -> dict[str, tuple[str, Figure]]:
    figures: dict[str, tuple[str, Figure]] = {}
    methods: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for number, group in enumerate(groups):
        if group[0].experiment != "jumping":
            continue
        members, label = [run.result for run in group], label_of(group[0])
        for color in ("red", "green") if group[0].config.get("colors") else ("white",):
            shown = label if color == "white" else f"{label}, {color}"
            title = f"{shown}: {'median of ' if len(members) > 1 else ''}{len(members)} run{'s'[: len(members) - 1]}"
            figures[f"solved_{number:02d}_{color}"] = (title, result_figures.median_grid(members, title, color))
        source = own_source(group[0].config)
        if source is not None and source[2:] == (False, 0.0):
            # Methods that do not learn have no curve.
            learned = [member for member in members if member.get("curve")]
            if learned:
                methods.setdefault((source[0], source[1]), []).extend(learned)
    for grid, curves in result_figures.by_grid(methods).items():
        drawn = result_figures.banded_curves(curves, "test_solved_percent", f"{grid} grid")
        figures[f"curves_{grid}"] = (f"Generalisation during training, {grid} grid", drawn)
    return figures | _study_figures(results)


def _study_figures(results: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, Figure]]:
    figures: dict[str, tuple[str, Figure]] = {}
    if epsilons := epsilon_scores(results):
        caption = "PSEs from suboptimal policies: mean and standard deviation"
        figures["epsilon"] = (caption, result_figures.epsilon_curve(epsilons))
    if colors := color_series(results):
        caption = "Red tasks solved after training on red and green; 99 % intervals, dotted the paper's mean"
        figures["colors"] = (caption, result_figures.color_bars(colors, METHOD_NAMES))
    if scores := grid_scores(results):
        caption = "Performance profiles over grids, with 95 % bands"
        figures["profiles"] = (caption, result_figures.profiles(scores))
    return figures


def _other_tables(runs: StoredRuns, diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> dict[str, str]:
    """The tables that are not in the paper's layout: file name -> content."""
    aggregates = aggregate_table([run.result for run in runs.of("jumping")])
    contents = {"aggregates.md": aggregates} if aggregates else {}
    if runs.of("grid"):
        contents["grid.md"] = grid_table(run.result for run in runs.of("grid"))
    if diagnoses:
        contents |= {"diagnosis.md": diagnosis_markdown(diagnoses), "diagnosis.csv": diagnosis_csv(diagnoses)}
    return contents


def _write_tables(tables: Sequence[Table], others: Mapping[str, str], out: Path) -> list[Path]:
    contents = {f"{table.name}.md": table.markdown() for table in tables}
    contents |= {f"{table.name}.csv": table.csv() for table in tables} | dict(others)
    return [_write(out / "tables" / name, text) for name, text in contents.items()]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path


def _write_figures(figures: Mapping[str, tuple[str, Figure]], out: Path) -> list[Path]:
    paths = []
    for name, (_, figure) in figures.items():
        for kind in ("png", "pdf"):
            path = out / "figures" / f"{name}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=150)
            paths.append(path)
    return paths
