"""Ctrl-C heard between two iterations: compiled code that it breaks into answers with errors of its own."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """The handler of worker processes, which Ctrl-C reaches from the terminal and once more from their parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


class Interrupts:
    """While it is entered, a Ctrl-C waits until somebody looks at `heard`.

    A second one breaks in at once, except into worker processes (`interrupt_once`), where it is most likely the same.
    Outside the main thread, and where interrupts are ignored or handled by somebody else, nothing is changed.
    """

    def __init__(self) -> None:
        self.heard = False
        """Whether there was a Ctrl-C."""
        self._before: Any = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        usual = before in (signal.default_int_handler, interrupt_once)
        if usual and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            once = self.heard and self._before is interrupt_once
            signal.signal(signal.SIGINT, signal.SIG_IGN if once else self._before)
            self._before = None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.heard and self._before is not interrupt_once:
            raise KeyboardInterrupt
        self.heard = True
