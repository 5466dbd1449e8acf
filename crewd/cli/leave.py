"""See a daemon off: hold on to its process, and wait until it is gone."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from crewd.instance import holder
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal

GONE_TIMEOUT = timedelta(seconds=30)
_PAUSE_SECONDS = 0.02


class Leaving:
    """The process that holds a state directory; its number cannot come to mean another one."""

    def __init__(self, state_dir: Path) -> None:
        self._lock = StatePaths(state_dir).lock
        self._holder = holder(self._lock)
        self._process = _opened(self._holder.pid) if self._holder is not None else None

    @property
    def is_there(self) -> bool:
        return self._holder is not None

    def terminate(self) -> None:
        """Tell it to end by a signal, for when it does not answer."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGTERM)

    def wait(self, timeout: timedelta = GONE_TIMEOUT) -> None:
        """Return when it is gone; refuse to wait for ever."""
        deadline = time.monotonic() + timeout.total_seconds()
        if self._process is not None:
            gone = select.select([self._process], [], [], timeout.total_seconds())[0]
            os.close(self._process)
            self._process = None
            if not gone:
                raise self._stays(timeout)
        while holder(self._lock) == self._holder is not None:
            if time.monotonic() > deadline:
                raise self._stays(timeout)
            time.sleep(_PAUSE_SECONDS)

    def _stays(self, timeout: timedelta) -> Refusal:
        pid = self._holder.pid if self._holder is not None else 0
        return Refusal(
            f"the daemon did not end within {timeout.total_seconds():g} s: {self._holder}",
            hint=f"what it acknowledged is safe on the disk: kill -9 {pid}",
            exit_code=Exit.TIMED_OUT,
        )


def _opened(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid) if pid > 0 else None
    except ProcessLookupError:
        return None
