"""Signals as something the loop can wait for."""

from __future__ import annotations

import os
import signal
from types import FrameType

from crewd.host.loop import READ, Loop

_READ_BYTES = 4096


class Signals:
    """Tells whether children died and whether the host is asked to end.

    A handler of our own, even one that does nothing, is reset when a worker execs; SIG_IGN would
    be inherited, and so would a mask.
    """

    def __init__(self, loop: Loop) -> None:
        self._reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.child_died = False
        self.terminate = False
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        loop.watch(self._reading, READ, self._wake)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGCHLD:
            self.child_died = True
        elif number == signal.SIGTERM:
            self.terminate = True

    def _wake(self, _events: int) -> None:
        os.read(self._reading, _READ_BYTES)
