"""Deferring Ctrl-C to iteration boundaries, because interrupting compiled code raises unrelated errors."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """SIGINT handler of worker processes, which get Ctrl-C from the terminal and again from their parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


class DeferredInterrupt:
    """Context manager that records SIGINT in `requested` instead of raising KeyboardInterrupt.

    A second SIGINT raises KeyboardInterrupt at once, except in worker processes (see `interrupt_once`), where it is
    most likely the same Ctrl-C. Outside the main thread, and where SIGINT is ignored or has another handler, nothing
    changes.
    """

    def __init__(self) -> None:
        self.requested = False
        """Whether SIGINT has arrived."""
        self._before: Any = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        usual = before in (signal.default_int_handler, interrupt_once)
        if usual and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            once = self.requested and self._before is interrupt_once
            signal.signal(signal.SIGINT, signal.SIG_IGN if once else self._before)
            self._before = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and self._before is not interrupt_once:
            raise KeyboardInterrupt
        self.requested = True
