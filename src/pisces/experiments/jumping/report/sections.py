"""What a report shows of jumping runs: figures, and the page's views of embeddings and diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from pisces.errors import UserError
from pisces.experiments.experiment import PageSection
from pisces.experiments.jumping.report import figures
from pisces.experiments.jumping.report.page import packed_metrics, packed_task, scripts, sections
from pisces.experiments.jumping.report.tables import (
    METHOD_NAMES,
    aggregate_table,
    cell_of,
    color_series,
    epsilon_scores,
    grid_scores,
)
from pisces.reports.results import StoredRun, StoredRuns

if TYPE_CHECKING:
    from pisces.experiments.jumping.report.diagnosis import RunDiagnosis
    from pisces.experiments.jumping.report.embeddings import Embedding

EMBEDDED = 6
"""At most this many settings are embedded, one run of each: embeddings make up most of the page's size."""
Figures = dict[str, tuple[str, Figure]]


def report_figures(runs: Sequence[StoredRun]) -> Figures:
    """Returns the figures whose data are there: file stem -> caption and figure."""
    return _solved_figures(runs) | _curve_figures(runs) | _study_figures(runs)


def _solved_figures(runs: Sequence[StoredRun]) -> Figures:
    drawn: Figures = {}
    for number, group in enumerate(StoredRuns(tuple(runs)).by_setting()):
        config = group[0].config
        for color in ("red", "green") if config.colors else ("white",):
            shown = config.label if color == "white" else f"{config.label}, {color}"
            title = f"{shown}: {len(group)} run{'s'[: len(group) - 1]}"
            drawn[f"solved_{number:02d}_{color}"] = (title, figures.share_grid(group, title, color))
    return drawn


def _curve_figures(runs: Sequence[StoredRun]) -> Figures:
    methods: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        cell = cell_of(run.config)
        if cell is not None and cell[2:] == (False, 0.0) and run.curve:
            methods.setdefault(cell[:2], []).append(run)
    return {
        f"curves_{grid}": (
            f"Learning curves, {grid} grid",
            figures.banded_curves(curves, "test_solved_percent", f"{grid} grid"),
        )
        for grid, curves in figures.by_grid(methods).items()
    }


def _study_figures(runs: Sequence[StoredRun]) -> Figures:
    drawn: Figures = {}
    if epsilons := epsilon_scores(runs):
        caption = "PSEs from suboptimal policies: mean and standard deviation"
        drawn["epsilon"] = (caption, figures.epsilon_curve(epsilons))
    if colors := color_series(runs):
        caption = "Red tasks solved after training on red and green; 99 % CI, dotted the paper's mean"
        drawn["colors"] = (caption, figures.color_bars(colors, METHOD_NAMES))
    if scores := grid_scores(runs):
        caption = "Performance profiles over grids, with 95 % bands"
        drawn["profiles"] = (caption, figures.profiles(scores))
    return drawn


def page_section(runs: Sequence[StoredRun], projection: str) -> PageSection:
    """Returns the views of the page; what cannot be computed becomes a note."""
    notes: list[str] = []
    aggregates = aggregate_table(runs)
    tables = {"aggregates.md": aggregates} if aggregates else {}
    data = {**packed_task(), "metrics": packed_metrics(), "embeddings": [], "diagnoses": []}
    drawn: Figures = {}
    chosen = _embedded_runs(runs, projection, notes)
    if chosen:
        views, tables_of_agents, drawn = _agent_views(chosen, projection, notes)
        data, tables = data | views, tables | tables_of_agents
    return PageSection(data, sections(), scripts(), tables, drawn, tuple(notes))


def _embedded_runs(runs: Sequence[StoredRun], projection: str, notes: list[str]) -> list[StoredRun]:
    """Returns one run of each setting that has a checkpoint."""
    if projection == "none":
        return []
    groups = [[run for run in group if run.has_checkpoint] for group in StoredRuns(tuple(runs)).by_setting()]
    chosen = [group[0] for group in groups if group]
    if not chosen:
        notes.append("No jumping run has its checkpoint here: embeddings and learned similarities are left out.")
    if len(chosen) > EMBEDDED:
        notes.append(f"Embeddings of {EMBEDDED} configs are shown; {len(chosen) - EMBEDDED} more have checkpoints.")
    return chosen[:EMBEDDED]


def _agent_views(
    runs: Sequence[StoredRun], projection: str, notes: list[str]
) -> tuple[dict[str, Any], dict[str, str], Figures]:
    """Returns what trained agents add: data of the page, tables and figures."""
    # Imported here because they import torch, which most reports need not wait for.
    from pisces.experiments.jumping.report.diagnosis import diagnosis_csv, diagnosis_markdown, packed_diagnosis
    from pisces.experiments.jumping.report.embeddings import embedding_figure, packed_embedding

    embeddings = _embeddings(runs, projection, notes)
    diagnoses = _diagnoses([run for run, _ in embeddings], notes)
    labels = page_labels([run for run, _ in embeddings])
    data = {
        "embeddings": [packed_embedding(label, one) for label, (_, one) in zip(labels, embeddings, strict=True)],
        "diagnoses": [packed_diagnosis(labels[place], one) for place, _, one in diagnoses],
    }
    tables, drawn = {}, {}
    if diagnoses:
        named = [(label, one) for _, label, one in diagnoses]
        tables = {"diagnosis.md": diagnosis_markdown(named), "diagnosis.csv": diagnosis_csv(named)}
    if embeddings:
        caption = "Embedded states: colors are tasks, numbers distances to the obstacle"
        drawn = {"embeddings": (caption, embedding_figure([(run.label, one) for run, one in embeddings]))}
    return data, tables, drawn


def _embeddings(runs: Sequence[StoredRun], projection: str, notes: list[str]) -> list[tuple[StoredRun, Embedding]]:
    from pisces.experiments.jumping.report.embeddings import embed_run, has_umap

    if projection == "umap" and not has_umap():
        notes.append("Embeddings are drawn by PCA, not UMAP, which needs an extra: pip install 'pisces-rl[report]'")
        projection = "pca"
    embedded = []
    for run in runs:
        try:
            embedded.append((run, embed_run(run, projection)))
        except UserError as error:
            notes.append(f"Not embedded: {error}")
    return embedded


def page_labels(runs: Sequence[StoredRun]) -> list[str]:
    """Names runs by method and seed, if they differ in nothing else, otherwise with everything that sets them apart."""
    alike = len({(run.config.where, str(run.config.changes), run.config.preset) for run in runs}) == 1
    names = [
        f"{run.experiment.method_names.get(run.config.method, run.config.method)}, seed {run.config.seed}"
        for run in runs
    ]
    return names if alike and len(set(names)) == len(names) else [run.label for run in runs]


def _diagnoses(runs: Sequence[StoredRun], notes: list[str]) -> list[tuple[int, str, RunDiagnosis]]:
    """Returns the place of a run, its label, and its diagnosis."""
    from pisces.experiments.jumping.report.diagnosis import diagnose_run

    found = []
    for place, run in enumerate(runs):
        try:
            found.append((place, run.label, diagnose_run(run)))
        except UserError as error:
            notes.append(f"Not diagnosed: {error}")
    return found
