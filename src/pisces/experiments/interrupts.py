"""Ctrl-C heard between two iterations: compiled code that it breaks into answers with errors of its own."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """While it is entered, the first Ctrl-C waits until `check` is called; a second one breaks in at once.

    Outside the main thread, and where interrupts are ignored or handled by somebody else, nothing is changed.
    """

    def __init__(self) -> None:
        self._heard = False
        self._before: Any = None

    def __enter__(self) -> Self:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard:
            raise KeyboardInterrupt
        self._heard = True

    def check(self) -> None:
        """Raises KeyboardInterrupt if there was one."""
        if self._heard:
            raise KeyboardInterrupt
