"""Tell the service manager that started this process, if one did, how it is: see sd_notify(3)."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import MutableMapping

# One that is busy may let us wait, but not for long: the caller is an event loop.
_SEND_SECONDS = 0.5


def take_address(env: MutableMapping[str, str] = os.environ) -> str:
    """Return where it wants to hear that, or nothing.

    It is taken out of the environment, so that no child speaks in our name.
    """
    address = env.pop("NOTIFY_SOCKET", "")
    return address if address.startswith(("/", "@")) else ""


def notify(address: str, text: str) -> None:
    """Send it lines of NAME=value; raise OSError if they cannot be sent."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_SEND_SECONDS)
        sender.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        sender.send(text.encode())


def tell_ready(address: str) -> None:
    """Say that the host answers; that it cannot be said harms nobody but who waits for it."""
    if not address:
        return
    try:
        notify(address, "READY=1")
    except OSError as error:
        sys.stderr.write(f"crewd host: the service manager cannot be told: {error}\n")
