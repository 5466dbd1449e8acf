"""The one place that reads the wall clock for decisions."""

from __future__ import annotations

from time import time_ns
from typing import Final

from crewd.core.units import Instant

_NS_PER_US: Final = 1000


class Clock:
    """UTC that never goes back: a clock that is set back stands still until it has caught up."""

    def __init__(self) -> None:
        self._latest = Instant(0)

    def now(self) -> Instant:
        self._latest = max(self._latest, Instant(time_ns() // _NS_PER_US))
        return self._latest
