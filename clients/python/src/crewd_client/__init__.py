"""The Python client of crewd: start runs, follow them, answer their questions.

Asyncio only. The messages are in `crewd_client.v1`. What needs gRPC is loaded at its first use, so
that `crewd_client.locate` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from crewd_client._version import __version__

if TYPE_CHECKING:
    from crewd_client.client import Client
    from crewd_client.errors import (
        AccessError,
        AskSettledError,
        CrewdError,
        CursorExpiredError,
        InvalidRequestError,
        NoDaemonError,
        NotFoundError,
        RequestIdReusedError,
        SequenceError,
        StatusConflictError,
        UnavailableError,
        Violation,
    )
    from crewd_client.pages import list_asks, list_events, list_runs, list_tasks
    from crewd_client.watch import Change, read_output, watch_asks, watch_run, watch_runs

__all__ = [
    "AccessError",
    "AskSettledError",
    "Change",
    "Client",
    "CrewdError",
    "CursorExpiredError",
    "InvalidRequestError",
    "NoDaemonError",
    "NotFoundError",
    "RequestIdReusedError",
    "SequenceError",
    "StatusConflictError",
    "UnavailableError",
    "Violation",
    "__version__",
    "list_asks",
    "list_events",
    "list_runs",
    "list_tasks",
    "read_output",
    "watch_asks",
    "watch_run",
    "watch_runs",
]

_MODULES = ("client", "errors", "pages", "watch")


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
