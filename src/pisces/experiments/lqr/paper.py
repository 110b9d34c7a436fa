"""The paper's numbers for linear control: mean and standard deviation over 100 runs (arXiv:2101.05265)."""

from __future__ import annotations

from collections.abc import Mapping

from pisces.experiments.published import Published

LQR: Mapping[str, Mapping[int, Published]] = {
    # The table of "LQR: Additional Details": absolute error of the cost by number of distractors.
    "overparametrized": {500: Published(25.8, 1.5), 1000: Published(24.9, 1.1), 10_000: Published(24.9, 0.4)},
    "ipo": {500: Published(32.6, 5.0), 1000: Published(27.3, 2.8), 10_000: Published(24.8, 0.4)},
    "l1": {500: Published(28.2, 0.0), 1000: Published(28.2, 0.0), 10_000: Published(28.2, 0.0)},
    "psm": {500: Published(0.03, 0.0), 1000: Published(0.03, 0.0), 10_000: Published(0.02, 0.0)},
}
