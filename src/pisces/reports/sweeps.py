"""What a terminal shows of a sweep."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from pisces.experiments.engine import Job, SweepState
from pisces.reports.console import LiveTable, evaluation_text


class SweepDisplay(LiveTable):
    """A live table of a sweep; where there is no terminal, one line per finished run."""

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        super().__init__(console)
        self._jobs = jobs
        self._started = time.monotonic()
        self._told = 0

    def update(self, state: SweepState) -> None:
        """Shows the state of the sweep."""
        self.show(lambda: self._table(state))
        for index in state.ran[self._told :]:
            self._console.print(f"{len(state.done)}/{state.total} {self._name(index)} finished", soft_wrap=True)
        self._told = len(state.ran)

    def _table(self, state: SweepState) -> Table:
        table = Table("run", "progress", "newest evaluation", title=self._headline(state), title_justify="left")
        for index, progress in state.running.items():
            share = "starting" if progress is None else f"{100 * progress.iteration / progress.total:.0f} %"
            solved = "" if progress is None or progress.evaluation is None else evaluation_text(progress.evaluation)
            table.add_row(self._name(index), share, solved)
        for index, path in state.failed.items():
            table.add_row(self._name(index), "failed", str(path))
        return table

    def _headline(self, state: SweepState) -> str:
        hours = (time.monotonic() - self._started) / 3600
        # Runs under way count by their share, so that the rate is known before the first one ends.
        shares = sum(p.iteration / p.total for p in state.running.values() if p is not None)
        rate = (len(state.ran) + shares) / max(hours, 1e-9)
        left = state.total - len(state.done) - len(state.failed) - shares
        time_left = f"{left / rate:.1f} h left" if rate > 0 and shares + len(state.ran) > 0 else "time left unknown"
        return (
            f"{len(state.done)} of {state.total} done, {len(state.running)} running, {len(state.failed)} failed, "
            f"{rate:.1f} runs per hour, {time_left}"
        )

    def _name(self, index: int) -> str:
        config = self._jobs[index].config.as_dict()
        words = [str(config.get(name)) for name in ("task", "method", "init", "grid", "study") if config.get(name)]
        return ", ".join([*words, f"seed {config.get('seed')}"])


def sweep_summary(jobs: Sequence[Job], state: SweepState) -> str:
    """Says in one line what became of a sweep, and where to read about failures."""
    told = f"{len(state.done)} of {len(jobs)} runs done, {len(state.ran)} of them now"
    if state.failed:
        told += f"; {len(state.failed)} failed: " + ", ".join(map(str, state.failed.values()))
    return told
