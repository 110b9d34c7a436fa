"""The paper's numbers for Distracting Control (Table 3, arXiv:2101.05265)."""

from __future__ import annotations

from collections.abc import Mapping

from pisces.envs.distracting.tasks import PAPER_TASKS
from pisces.experiments.published import Published


def _row(*cells: tuple[float, float]) -> dict[str, Published]:
    return {task: Published(*cell) for task, cell in zip(PAPER_TASKS, cells, strict=True)}


DISTRACTING: Mapping[tuple[str, str], Mapping[str, Published]] = {
    # Table 3: return on unseen backgrounds at 500,000 steps, 5 seeds; standard errors. By initialization and method.
    ("random", "drq"): _row((747, 28), (582, 42), (220, 12), (646, 54), (931, 14), (549, 83)),
    ("random", "drq+pse"): _row((821, 17), (749, 19), (308, 12), (779, 49), (955, 10), (789, 28)),
    ("pretrained", "drq"): _row((748, 30), (689, 22), (219, 10), (764, 48), (943, 10), (709, 29)),
    ("pretrained", "drq+pse"): _row((805, 25), (753, 13), (282, 8), (803, 19), (962, 11), (829, 21)),
}
