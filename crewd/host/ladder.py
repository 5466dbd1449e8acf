"""Stop a tree for good: ask, wait, kill, and kill again until nothing is left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from crewd.host.job import Job
from crewd.host.loop import Loop, Timer
from crewd.host.owners import Owners
from crewd.host.tree import Process, kill_all, send

_KILLING_SECONDS = 3.0
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.2

OnGone = Callable[[Job, list[Process]], None]


class Ladder:
    """Runs on its own timers to its end; then tells `on_gone` who could not be killed."""

    def __init__(self, loop: Loop, owners: Owners, job: Job, on_gone: OnGone) -> None:
        self._loop = loop
        self._owners = owners
        self._job = job
        self._on_gone = on_gone
        self._deadline = 0.0
        self._give_up_at: float | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._timer: Timer | None = None
        self._asked: set[tuple[int, int]] = set()

    def begin(self, grace: float) -> None:
        self._ask()
        self._deadline = time.monotonic() + grace
        self._timer = self._loop.after(grace, self._kill)

    def shorten(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        if self._give_up_at is None and deadline < self._deadline:
            self._deadline = deadline
            self._cancel_timer()
            self._timer = self._loop.after(grace, self._kill)

    def look(self) -> None:
        """See whether the tree is gone; called when a process of it has ended."""
        if self._owners.is_gone(self._job):
            self._end([])
        else:
            self._ask()

    def _ask(self) -> None:
        """Ask each process once; one may have been born while its parent was asked."""
        for process in self._owners.members(self._job):
            if process.identity not in self._asked:
                self._asked.add(process.identity)
                send(process, signal.SIGTERM, signal.SIGCONT)

    def _kill(self) -> None:
        now = time.monotonic()
        if self._owners.is_gone(self._job):
            self._end([])
            return
        left = self._owners.members(self._job)
        if self._give_up_at is None:
            self._give_up_at = now + _KILLING_SECONDS
        elif now >= self._give_up_at:
            self._end(left)
            return
        kill_all(left)
        self._timer = self._loop.after(self._pause, self._kill)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)

    def _end(self, survivors: list[Process]) -> None:
        self._cancel_timer()
        self._on_gone(self._job, survivors)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
