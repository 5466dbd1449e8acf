"""The wall clock is set back, while time itself goes on."""

from __future__ import annotations

import asyncio

import pytest

from crewd.core.units import SECOND, Instant
from crewd.runtime import clock as clock_module
from crewd.runtime.clock import Clock
from crewd.runtime.timers import Timers

NS = 1_000_000_000


class Wall:
    """A wall clock that shows what it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_000_000.0
        monkeypatch.setattr(clock_module, "time_ns", lambda: int(self.seconds * NS))


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


def test_now_never_goes_back(wall: Wall) -> None:
    clock = Clock()
    before = clock.now()
    wall.seconds -= 3600
    assert clock.now() == before
    wall.seconds += 3601
    assert clock.now() == before + SECOND


async def test_a_deadline_fires_when_the_clock_has_caught_up(wall: Wall) -> None:
    fired: asyncio.Queue[str] = asyncio.Queue()
    clock = Clock()
    timers = Timers(clock, fired.put_nowait)
    timers.set("late", Instant(clock.now() + 3600 * SECOND))
    timers.set("soon", Instant(clock.now() + SECOND // 100))
    wall.seconds -= 3600
    wall.seconds += 3600.5
    async with asyncio.timeout(60):
        assert await fired.get() == "soon"
    assert fired.empty()
    timers.close()
