"""What the service manager that started us hears: that we serve, how we are, and that we live.

The protocol is that of sd_notify(3): datagrams of NAME=value lines to the socket it named.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import socket
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager

import structlog

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_MICROSECONDS = 1_000_000
# One that is busy may let us wait, but not for long: the caller is the event loop.
_SEND_SECONDS = 0.5
_STATUS_CHARACTERS = 400

_log = structlog.get_logger()


def take_manager(env: MutableMapping[str, str]) -> Manager | None:
    """Return who wants to hear from this process, if anybody does.

    Its variables are taken out of the environment, so that no child speaks in our name.
    """
    address, usec, pid = (env.pop(name, "") for name in _VARIABLES)
    if not address.startswith(("/", "@")):
        return None
    is_ours = not pid or pid == str(os.getpid())
    watched = is_ours and usec.isascii() and usec.isdigit() and int(usec) > 0
    return Manager(address, int(usec) / _MICROSECONDS / 2 if watched else None)


class Manager:
    """The service manager. That it cannot be told something is logged once and harms nobody."""

    def __init__(self, address: str, ping_seconds: float | None) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
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
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SEND_SECONDS)
                sender.connect(self._address)
                sender.send(text.encode())
        except OSError as error:
            if not self._failed:
                self._failed = True
                _log.warning("service_manager_not_told", said=text, detail=str(error))
