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
    from crewd_client.pages import (
        list_agents,
        list_artifacts,
        list_asks,
        list_events,
        list_runs,
        list_skills,
        list_tasks,
        list_teams,
        list_workflows,
    )
    from crewd_client.watch import (
        Change,
        read_artifact,
        read_output,
        watch_asks,
        watch_run,
        watch_runs,
    )
    from crewd_client.worker import Answer, NotAWorkerError, Option, Worker

__all__ = [
    "AccessError",
    "Answer",
    "AskSettledError",
    "Change",
    "Client",
    "CrewdError",
    "CursorExpiredError",
    "InvalidRequestError",
    "NoDaemonError",
    "NotAWorkerError",
    "NotFoundError",
    "Option",
    "RequestIdReusedError",
    "SequenceError",
    "StatusConflictError",
    "UnavailableError",
    "Violation",
    "Worker",
    "__version__",
    "list_agents",
    "list_artifacts",
    "list_asks",
    "list_events",
    "list_runs",
    "list_skills",
    "list_tasks",
    "list_teams",
    "list_workflows",
    "read_artifact",
    "read_output",
    "watch_asks",
    "watch_run",
    "watch_runs",
]

_MODULES = ("client", "errors", "pages", "watch", "worker")


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
