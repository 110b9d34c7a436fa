"""The paper's numbers for the jumping task: mean and standard deviation over 100 runs (arXiv:2101.05265)."""

from __future__ import annotations

from collections.abc import Mapping

from pisces.experiments.published import Published

JUMPING: Mapping[str, Mapping[str, Published]] = {
    # Table 1, methods by grids.
    "dropout+l2": {"wide": Published(17.8, 2.2), "narrow": Published(10.2, 4.6), "random": Published(9.3, 5.4)},
    "bisimulation-transfer": {
        "wide": Published(17.9, 0.0),
        "narrow": Published(17.9, 0.0),
        "random": Published(30.9, 4.2),
    },
    "pse": {"wide": Published(33.6, 10.0), "narrow": Published(9.3, 5.3), "random": Published(37.7, 10.4)},
    "randconv": {"wide": Published(50.7, 24.2), "narrow": Published(33.7, 11.8), "random": Published(71.3, 15.6)},
    "randconv+pi-bisimulation": {
        "wide": Published(41.4, 17.6),
        "narrow": Published(17.4, 6.7),
        "random": Published(33.4, 15.6),
    },
    "randconv+pse": {"wide": Published(87.0, 10.1), "narrow": Published(52.4, 5.8), "random": Published(83.4, 10.1)},
    # Table 2, the ablation, on the wide grid; its fourth cell is randconv+pi-bisimulation above.
    "randconv+psm-cme": {"wide": Published(87.0, 10.1)},
    "randconv+psm-l2": {"wide": Published(17.5, 8.4)},
    "randconv+pi-bisimulation-cme": {"wide": Published(23.1, 7.6)},
}

JUMPING_COLORS: Mapping[str, Mapping[str, Published]] = {
    # The table of the task with colors: standard errors.
    "randconv": {"red": Published(6.2, 0.4), "green": Published(99.6, 0.2)},
    "dropout+l2": {"red": Published(19.5, 0.2), "green": Published(100.0, 0.0)},
    "randconv+pse": {"red": Published(29.8, 1.3), "green": Published(99.6, 0.2)},
    "pse": {"red": Published(37.9, 1.9), "green": Published(100.0, 0.0)},
}
