"""One timer for all deadlines: it sleeps to the next due instant and asks the wall clock again.

A suspended machine stops the loop's own timers, so it never sleeps longer than a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from crewd.core.units import SECOND, Instant
from crewd.runtime.clock import Clock

LONGEST_SLEEP: Final = 60.0


class Timers:
    """The next due instant of each run; `fire` is called with a run's id when it has passed."""

    def __init__(self, clock: Clock, fire: Callable[[str], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._due: dict[str, Instant] = {}
        self._heap: list[tuple[Instant, str]] = []
        self._handle: asyncio.TimerHandle | None = None
        self._wakes_at: Instant | None = None

    def set(self, run_id: str, instant: Instant | None) -> None:
        """Replace the run's due instant; None when it has none."""
        if self._due.get(run_id) == instant:
            return
        if instant is None:
            del self._due[run_id]
            return
        self._due[run_id] = instant
        heappush(self._heap, (instant, run_id))
        if self._wakes_at is None or instant < self._wakes_at:
            self._sleep()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _sleep(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        if not self._heap:
            self._handle, self._wakes_at = None, None
            return
        self._wakes_at = self._heap[0][0]
        wait = max(0.0, (self._wakes_at - self._clock.now()) / SECOND)
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(min(wait, LONGEST_SLEEP), self._wake)

    def _wake(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            instant, run_id = heappop(self._heap)
            if self._due.get(run_id) == instant:
                del self._due[run_id]
                self._fire(run_id)
        self._sleep()
