"""What the service manager that started us hears: that we serve, how we are, and that we live."""

from __future__ import annotations

import asyncio
import faulthandler
import os
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager

import structlog

from crewd.host.notify import notify, take_address

_MICROSECONDS = 1_000_000
_STATUS_CHARACTERS = 400

_log = structlog.get_logger()


def take_manager(env: MutableMapping[str, str]) -> Manager | None:
    """Return who wants to hear from this process, if anybody does.

    Its variables are taken out of the environment, so that no child speaks in our name.
    """
    address = take_address(env)
    usec, pid = (env.pop(name, "") for name in ("WATCHDOG_USEC", "WATCHDOG_PID"))
    if not address:
        return None
    is_ours = not pid or pid == str(os.getpid())
    watched = is_ours and usec.isascii() and usec.isdigit() and int(usec) > 0
    return Manager(address, int(usec) / _MICROSECONDS / 2 if watched else None)


class Manager:
    """The service manager. That it cannot be told something is logged once and harms nobody."""

    def __init__(self, address: str, ping_seconds: float | None) -> None:
        self._address = address
        self._ping_seconds = ping_seconds
        self._next_ping: asyncio.TimerHandle | None = None
        self._failed = False

    def ready(self) -> None:
        """Say that we serve: what was to be started after us may be."""
        self._tell("READY=1")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def status(self, text: str) -> None:
        """Say in one line how we are."""
        self._tell(f"STATUS={' '.join(text.split())[:_STATUS_CHARACTERS]}")

    @contextmanager
    def watched(self) -> Generator[None]:
        """Ping for as long as this is entered, if it wants that.

        The pings are timers of the event loop: one that hangs does not ping.
        """
        if self._ping_seconds is not None:
            # It ends who does not ping by SIGABRT: then its log shows where we hung.
            faulthandler.enable()
            self._ping(asyncio.get_running_loop(), self._ping_seconds)
        try:
            yield
        finally:
            if self._next_ping is not None:
                self._next_ping.cancel()

    def _ping(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._tell("WATCHDOG=1")
        self._next_ping = loop.call_later(seconds, self._ping, loop, seconds)

    def _tell(self, text: str) -> None:
        try:
            notify(self._address, text)
        except OSError as error:
            if not self._failed:
                self._failed = True
                _log.warning("service_manager_not_told", said=text, detail=str(error))
