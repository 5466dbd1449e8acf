"""Waiting for what another process does, where no event loop runs."""

from __future__ import annotations

import select
import time
from collections.abc import Callable

_PAUSE_SECONDS = 0.005


def wait_until(fact: Callable[[], object], seconds: float, what: str = "") -> None:
    """Wait until something is true, looking at it every few milliseconds."""
    give_up_at = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < give_up_at, f"not true after {seconds} s: {what or fact}"
        select.select([], [], [], _PAUSE_SECONDS)
