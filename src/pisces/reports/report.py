"""`pisces report`: tables, figures and the page of the runs in some folders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from pisces.errors import UserError, unknown_name
from pisces.experiments.experiment import PageSection
from pisces.files import replacing, write_atomically
from pisces.reports.figures import png_and_pdf
from pisces.reports.page.explorer import explorer_page, page_data
from pisces.reports.results import Experiments, Report, StoredRuns, no_report, read_runs
from pisces.reports.tables import Table

PROJECTIONS = ("umap", "pca", "none")
LISTED = 20
"""At most this many skipped files are listed one by one."""
MOST_LETTERS = 150
"""Of a file name, which systems limit."""
Figures = dict[str, tuple[str, Figure]]
Drawn = dict[str, tuple[bytes, bytes]]
"""PNG and PDF of figures by name."""


@dataclass(frozen=True)
class Written:
    """What a report wrote."""

    page: Path
    """The page."""
    files: tuple[Path, ...]
    """Tables and figures."""
    notes: tuple[str, ...]
    """What was left out, and why."""


def write_report(
    roots: Sequence[Path],
    out: Path,
    experiments: Experiments,
    projection: str = "umap",
    mixed_versions: bool = False,
    note: str = "",
    report: Report = no_report,
) -> Written:
    """Writes tables, figures and the page of all finished runs below some folders.

    Args:
        roots: folders with runs; a run that lies in several of them counts once.
        out: where to write.
        experiments: the experiments by name.
        projection: "umap" or "pca" for the embeddings of runs with checkpoints, "none" to leave them out.
        mixed_versions: accept runs of several versions of pisces.
        note: how to read the page.
        report: called with what is being done, how much of it is done, and how much there is.
    """
    if projection not in PROJECTIONS:
        raise unknown_name("projection", projection, PROJECTIONS)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must be a folder, but {str(out)!r} is a file")
    runs = _checked_runs(roots, experiments, mixed_versions, report)
    tables: list[Table] = []
    figures: Figures = {}
    sections: dict[str, PageSection] = {}
    for name, own in runs.by_experiment().items():
        report(f"tables and figures of {name}", 0, 1)
        tables += [replace(table, experiment=name) for table in experiments[name].tables(own) if table.filled]
        sections[name] = experiments[name].page_section(own, projection)
        _add(figures, {**experiments[name].figures(own), **sections[name].figures}, name)
    notes = _notes(runs, sections)
    drawn = _drawn(figures, report)
    shown = {name: (figures[name][0], png) for name, (png, _) in drawn.items()}
    report("writing the page", 0, 1)
    page = explorer_page(runs, page_data(runs, tables, sections, note), sections, notes, shown)
    texts = {f"{table.name}.md": table.markdown() for table in tables}
    texts |= {f"{table.name}.csv": table.csv() for table in tables}
    for section in sections.values():
        texts |= section.tables
    try:
        files = [_write(out / "tables" / file_name(name), text) for name, text in texts.items()]
        files += _write_figures(drawn, out)
        return Written(_write(out / "report.html", page), tuple(files), tuple(notes))
    except OSError as error:
        raise UserError(f"cannot write to {str(out)!r}: {error.strerror}") from error


def file_name(name: str) -> str:
    """Returns a name, which may contain text from result files, as a file name without folders."""
    return re.sub(r"[^\w+.-]+", "_", name, flags=re.ASCII).lstrip(".")[:MOST_LETTERS] or "unnamed"


def _add(figures: Figures, own: Figures, experiment: str) -> None:
    """Adds an experiment's figures; a stem that another experiment has is told apart by the experiment's name."""
    for stem, figure in own.items():
        figures[f"{experiment}_{stem}" if stem in figures else stem] = figure


def _checked_runs(roots: Sequence[Path], experiments: Experiments, mixed_versions: bool, report: Report) -> StoredRuns:
    if not roots:
        raise UserError("no folders of runs given; e.g. pisces report runs --out report")
    runs = read_runs(roots, experiments, report)
    named = ", ".join(map(str, roots))
    if not runs.runs:
        skipped = f"; {len(runs.skipped)} unusable result files, e.g. {runs.skipped[0]}" if runs.skipped else ""
        raise UserError(f"no finished runs below {named}{skipped}")
    if len(runs.versions()) > 1 and not mixed_versions:
        raise UserError(
            f"the runs below {named} are of several versions of pisces ({_versions(runs)}); report on their folders "
            "one by one, or add --mixed-versions"
        )
    return runs


def _notes(runs: StoredRuns, sections: Mapping[str, PageSection]) -> list[str]:
    notes = [f"Left out: {line}" for line in runs.skipped[:LISTED]]
    if len(runs.skipped) > LISTED:
        notes.append(f"Left out: {len(runs.skipped) - LISTED} more result files.")
    if len(runs.versions()) > 1:
        notes.append(f"Runs of several versions of pisces: {_versions(runs)}.")
    return notes + [note for section in sections.values() for note in section.notes]


def _versions(runs: StoredRuns) -> str:
    return ", ".join(f"{version}: {count} runs" for version, count in runs.versions().items())


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path


def _drawn(figures: Figures, report: Report) -> Drawn:
    drawn: Drawn = {}
    for number, (name, (_, figure)) in enumerate(figures.items()):
        report("drawing figures", number, len(figures))
        drawn[name] = png_and_pdf(figure)
    return drawn


def _write_figures(drawn: Drawn, out: Path) -> list[Path]:
    paths = []
    for name, contents in drawn.items():
        for kind, content in zip(("png", "pdf"), contents, strict=True):
            path = out / "figures" / f"{file_name(name)}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content)
            paths.append(path)
    return paths
