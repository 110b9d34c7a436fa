"""What a report shows of jumping runs: figures, and the page's views of embeddings and diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from pisces.errors import UserError
from pisces.experiments.experiment import PageSection
from pisces.experiments.jumping.report import figures, task_figures
from pisces.experiments.jumping.report.diagnosis import (
    RunDiagnosis,
    diagnose_run,
    diagnosis_csv,
    diagnosis_markdown,
    packed_diagnosis,
)
from pisces.experiments.jumping.report.embeddings import Embedding, embed_run, embedding_figure, has_umap
from pisces.experiments.jumping.report.page import packed_embedding, packed_metrics, packed_task, scripts, sections
from pisces.experiments.jumping.report.tables import (
    METHOD_NAMES,
    aggregate_table,
    cell_of,
    color_series,
    epsilon_scores,
    grid_scores,
)
from pisces.reports.results import StoredRun, StoredRuns

EMBEDDED = 6
"""At most this many settings are embedded, one run of each: embeddings make up most of the page's size."""
TASK_FIGURES: Mapping[str, tuple[str, Callable[[], Figure]]] = {
    "metrics": ("Distances between the states of two tasks (discount 0.99)", task_figures.metric_maps),
    "randconv": ("RandConv on white, red and green obstacles", task_figures.randconv_samples),
    "trajectories": ("Optimal episodes; blocks brighten with time", task_figures.trajectories),
    "validation": ("Training and validation tasks of the wide grid", task_figures.validation_map),
}
Figures = dict[str, tuple[str, Figure]]


def report_figures(runs: Sequence[StoredRun]) -> Figures:
    """Returns the figures whose data are there: file stem -> caption and figure."""
    drawn = {name: (caption, draw()) for name, (caption, draw) in TASK_FIGURES.items()}
    return _solved_figures(runs) | _curve_figures(runs) | _study_figures(runs) | drawn


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
    embeddings = _embeddings(runs, projection, notes)
    diagnoses = _diagnoses([run for run, _ in embeddings], notes)
    aggregates = aggregate_table(runs)
    tables = {"aggregates.md": aggregates} if aggregates else {}
    if diagnoses:
        tables |= _diagnosis_tables([(label, one) for _, label, one in diagnoses])
    drawn: Figures = {}
    if embeddings:
        caption = "Embedded states: colors are tasks, numbers distances to the obstacle"
        drawn["embeddings"] = (caption, embedding_figure([(run.label, one) for run, one in embeddings]))
    labels = page_labels([run for run, _ in embeddings])
    data = {
        **packed_task(),
        "metrics": packed_metrics(),
        "embeddings": [packed_embedding(label, one) for label, (_, one) in zip(labels, embeddings, strict=True)],
        "diagnoses": [packed_diagnosis(labels[place], one) for place, _, one in diagnoses],
    }
    return PageSection(data, sections(), scripts(), tables, drawn, tuple(notes))


def _embeddings(runs: Sequence[StoredRun], projection: str, notes: list[str]) -> list[tuple[StoredRun, Embedding]]:
    """Embeds one run of each setting that has a checkpoint."""
    groups = [[run for run in group if run.has_checkpoint] for group in StoredRuns(tuple(runs)).by_setting()]
    chosen = [group[0] for group in groups if group]
    if projection == "none":
        return []
    if not chosen:
        notes.append("No jumping run has its checkpoint here: embeddings and learned similarities are left out.")
        return []
    if projection == "umap" and not has_umap():
        notes.append("Embeddings are drawn by PCA, not UMAP, which needs an extra: pip install 'pisces-rl[report]'")
        projection = "pca"
    if len(chosen) > EMBEDDED:
        notes.append(f"Embeddings of {EMBEDDED} configs are shown; {len(chosen) - EMBEDDED} more have checkpoints.")
    embedded = []
    for run in chosen[:EMBEDDED]:
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


def _diagnosis_tables(diagnoses: Sequence[tuple[str, RunDiagnosis]]) -> dict[str, str]:
    return {"diagnosis.md": diagnosis_markdown(diagnoses), "diagnosis.csv": diagnosis_csv(diagnoses)}


def _diagnoses(runs: Sequence[StoredRun], notes: list[str]) -> list[tuple[int, str, RunDiagnosis]]:
    """Returns the place of a run, its label, and its diagnosis."""
    found = []
    for place, run in enumerate(runs):
        try:
            found.append((place, run.label, diagnose_run(run)))
        except UserError as error:
            notes.append(f"Not diagnosed: {error}")
    return found
