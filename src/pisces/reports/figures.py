"""Figures, drawn with matplotlib from results; every function returns a figure that the caller saves or embeds."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pisces.reports.results import StoredRun

LINE_COLORS = ("#7a7a7a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Colors that stay apart for color-blind readers (Okabe and Ito's, gray first for the baseline)."""
DPI = 130
"""Resolution of figures as PNG."""

FloatArray = NDArray[np.float64]


def curve_matrix(runs: Sequence[StoredRun], value: str, clock: str = "iteration") -> tuple[FloatArray, FloatArray]:
    """Returns the evaluations that all runs share: their iterations or steps [k], and the values by run, [n, k]."""
    curves = [{row[clock]: row[value] for row in run.curve if clock in row and value in row} for run in runs]
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    return np.array(shared, dtype=np.float64), np.array([[curve[i] for i in shared] for curve in curves])


def plain_text(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")


def plain_axes(axes: Any) -> None:
    """A light grid, and no frame at the top and right."""
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def heat_map(distance: ArrayLike, title: str, label_x: str, label_y: str, unit: str = "distance") -> Figure:
    """Draws a distance matrix, rows downwards; light is near."""
    figure = Figure(figsize=(4.4, 3.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.asarray(distance), cmap="magma_r", aspect="auto", interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(label_x)
    axes.set_xlabel(label_y)
    figure.colorbar(image, ax=axes, label=unit, shrink=0.9)
    return figure


def png_and_pdf(figure: Figure) -> tuple[bytes, bytes]:
    """Returns a figure as PNG and as PDF, laid out once, which takes half of the time."""
    png, pdf = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI)
    figure.set_layout_engine("none")
    figure.savefig(pdf, format="pdf")
    return png.getvalue(), pdf.getvalue()


def data_uri(figure: Figure | bytes) -> str:
    """Returns a figure, or a PNG, for a page to embed."""
    if isinstance(figure, Figure):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        figure = buffer.getvalue()
    return "data:image/png;base64," + base64.b64encode(figure).decode()
