"""Tell the service manager that started the host, if one did, that the host answers."""

from __future__ import annotations

import os
import socket
import sys

_SEND_SECONDS = 0.5


def take_address() -> str:
    """Return where it wants to hear that; no other process of ours finds it afterwards."""
    return os.environ.pop("NOTIFY_SOCKET", "")


def tell_ready(address: str) -> None:
    """Say so; that it cannot be said harms nobody but who waits for it."""
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_SEND_SECONDS)
            sender.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            sender.send(b"READY=1")
    except OSError as error:
        sys.stderr.write(f"crewd host: the service manager cannot be told: {error}\n")
