"""The numbers that the paper reports (arXiv:2101.05265), for comparison: mean and standard deviation over 100 runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pisces.envs.distracting_tasks import PAPER_TASKS


@dataclass(frozen=True)
class Published:
    """A published mean and its spread."""

    mean: float
    """Mean: percent of unseen tasks solved, error of the cost, or return."""
    deviation: float
    """Standard deviation, or standard error where the paper reports that."""

    def __str__(self) -> str:
        digits = 1 if self.mean == 0 or self.mean >= 0.1 else 2
        return f"{self.mean:.{digits}f} ({self.deviation:.1f})"


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
    "randconv+bisimulation": {
        "wide": Published(41.4, 17.6),
        "narrow": Published(17.4, 6.7),
        "random": Published(33.4, 15.6),
    },
    "randconv+pse": {"wide": Published(87.0, 10.1), "narrow": Published(52.4, 5.8), "random": Published(83.4, 10.1)},
    # Table 2, the ablation, on the wide grid; its fourth cell is randconv+bisimulation above.
    "randconv+psm-cme": {"wide": Published(87.0, 10.1)},
    "randconv+psm-l2": {"wide": Published(17.5, 8.4)},
    "randconv+bisimulation-cme": {"wide": Published(23.1, 7.6)},
}

JUMPING_COLORS: Mapping[str, Mapping[str, Published]] = {
    # The table of the task with colours: standard errors.
    "randconv": {"red": Published(6.2, 0.4), "green": Published(99.6, 0.2)},
    "dropout+l2": {"red": Published(19.5, 0.2), "green": Published(100.0, 0.0)},
    "randconv+pse": {"red": Published(29.8, 1.3), "green": Published(99.6, 0.2)},
    "pse": {"red": Published(37.9, 1.9), "green": Published(100.0, 0.0)},
}


def _row(*cells: tuple[float, float]) -> dict[str, Published]:
    return {task: Published(*cell) for task, cell in zip(PAPER_TASKS, cells, strict=True)}


LQR: Mapping[str, Mapping[int, Published]] = {
    # The table of "LQR: Additional Details": absolute error of the cost by number of distractors.
    "overparametrized": {500: Published(25.8, 1.5), 1000: Published(24.9, 1.1), 10_000: Published(24.9, 0.4)},
    "ipo": {500: Published(32.6, 5.0), 1000: Published(27.3, 2.8), 10_000: Published(24.8, 0.4)},
    "l1": {500: Published(28.2, 0.0), 1000: Published(28.2, 0.0), 10_000: Published(28.2, 0.0)},
    "psm": {500: Published(0.03, 0.0), 1000: Published(0.03, 0.0), 10_000: Published(0.02, 0.0)},
}

DISTRACTING: Mapping[tuple[str, str], Mapping[str, Published]] = {
    # Table 3: return on unseen backgrounds at 500,000 steps, 5 seeds; standard errors. By initialisation and method.
    ("random", "drq"): _row((747, 28), (582, 42), (220, 12), (646, 54), (931, 14), (549, 83)),
    ("random", "drq+pse"): _row((821, 17), (749, 19), (308, 12), (779, 49), (955, 10), (789, 28)),
    ("pretrained", "drq"): _row((748, 30), (689, 22), (219, 10), (764, 48), (943, 10), (709, 29)),
    ("pretrained", "drq+pse"): _row((805, 25), (753, 13), (282, 8), (803, 19), (962, 11), (829, 21)),
}
