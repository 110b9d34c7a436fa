import signal
import threading

import pytest

from pisces.experiments.interrupts import Interrupts, interrupt_once


def test_an_interrupt_waits_until_somebody_looks():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts.heard
        signal.raise_signal(signal.SIGINT)
        assert interrupts.heard
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_breaks_in():
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_workers_hear_one_interrupt_only():
    before = signal.signal(signal.SIGINT, interrupt_once)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert interrupts.heard
        signal.raise_signal(signal.SIGINT)  # while the worker winds up
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, interrupt_once)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_and_other_handlers_are_left_alone():
    handlers = []

    def enter():
        with Interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        enter()
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [before, signal.SIG_IGN]
