"""A small event loop: descriptors, timers, and one turn at a time."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from select import EPOLLIN, EPOLLOUT, epoll

READ = EPOLLIN
WRITE = EPOLLOUT


class Timer:
    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Loop:
    """Calls back for ready descriptors and due timers.

    Bare epoll, since `selectors` costs a plain job a tenth of its time here. A descriptor that is
    ready may be unwatched by the callback before it, closed, and its number be taken by a new one:
    so every descriptor is non-blocking, and a callback may find that there is nothing to do.
    """

    def __init__(self) -> None:
        self._epoll = epoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def watch(self, descriptor: int, events: int, callback: Callable[[int], None]) -> None:
        self._epoll.register(descriptor, events)
        self._callbacks[descriptor] = callback

    def change(self, descriptor: int, events: int) -> None:
        self._epoll.modify(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Watch no more; a descriptor that is closed at once after this needs `forget` only."""
        self._epoll.unregister(descriptor)
        self.forget(descriptor)

    def forget(self, descriptor: int) -> None:
        del self._callbacks[descriptor]

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, action)
        heapq.heappush(self._timers, (timer.when, next(self._order), timer))
        return timer

    def turn(self, *, wait: bool) -> None:
        """Run what is ready; with `wait`, sleep until something is."""
        for descriptor, events in self._epoll.poll(self._timeout() if wait else 0):
            callback = self._callbacks.get(descriptor)
            if callback is not None:
                callback(events)
        if self._timers:
            self._run_timers()

    def _timeout(self) -> float | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.action is not None:
                timer.action()
