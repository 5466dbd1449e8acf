"""How a command ends: its exit code, and what it says when it does not do what it was told."""

from __future__ import annotations

import os
import re
from enum import IntEnum

import grpc

from crewd_client.errors import (
    AskSettledError,
    CrewdError,
    NoDaemonError,
    SequenceError,
    Violation,
)
from crewd_client.json import to_json
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_BLOCKED,
    RUN_STATUS_CANCELLED,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
    Run,
)


class Exit(IntEnum):
    """The exit codes of `crew`."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BLOCKED = 3
    CANCELLED = 4
    NO_DAEMON = 5
    REFUSED = 6
    BUG = 70
    TIMED_OUT = 124
    INTERRUPTED = 130
    TERMINATED = 143


class Refusal(Exception):  # noqa: N818  # an answer, not a failure of ours
    """Says what is not done, why, and what to do about it."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: int = Exit.USAGE,
        detail: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.detail = detail or {}

    def data(self) -> dict[str, object]:
        """Give the object that `--json` prints."""
        hint = {"hint": self.hint} if self.hint else {}
        return {"error": {"message": self.message, **hint, **self.detail}}


def refusal_of(error: CrewdError) -> Refusal:
    """Say what a failed call means for the person at the command line."""
    told = (f"  {each.field}: {each.description}" for each in untold(error))
    lines = [str(error), *told]
    violations = [{"field": v.field, "description": v.description} for v in error.violations]
    detail: dict[str, object] = {
        "code": error.code.name.lower(),
        "reason": error.reason,
        "metadata": error.metadata,
        "violations": violations,
    }
    if isinstance(error, AskSettledError) and error.ask is not None:
        detail["ask"] = to_json(error.ask)
    return Refusal("\n".join(lines), hint=_hint(error), code=_code(error), detail=detail)


def refusal_of_any(error: Exception) -> Refusal:
    """Say what went wrong; what nobody thought of is a bug of ours."""
    if isinstance(error, CrewdError):
        return refusal_of(error)
    if isinstance(error, FileNotFoundError) and _is_cwd_gone():
        hint = "go to another one, or name what is meant: --cwd DIR, or the RUN"
        return Refusal("the current directory is gone: it was deleted", hint=hint)
    if isinstance(error, UnicodeEncodeError):
        return Refusal(f"{error.object[:100]!a} is not UTF-8 text")
    message = f"{type(error).__name__}: {error}"
    hint = "this is a bug in crew: please report it with what CREWD_DEBUG=1 shows"
    return Refusal(message, hint=hint, code=Exit.BUG)


def code_of(run: Run) -> Exit:
    """Give the exit code for the status a run came to."""
    return _BY_STATUS.get(run.status, Exit.DONE)


_BY_STATUS: dict[int, Exit] = {
    RUN_STATUS_COMPLETED: Exit.DONE,
    RUN_STATUS_FAILED: Exit.FAILED,
    RUN_STATUS_BLOCKED: Exit.BLOCKED,
    RUN_STATUS_CANCELLED: Exit.CANCELLED,
}

_INVALID_SPEC = {
    "SPEC_INVALID",
    "GRAPH_CYCLE",
    "GRAPH_UNKNOWN_TASK",
    "CWD_INVALID",
    "REQUEST_TOO_LARGE",
}

_HINTS = {
    "RUN_NOT_FOUND": "see `crew ls -a`",
    "TASK_NOT_FOUND": "see `crew show RUN`",
    "ASK_NOT_FOUND": "see `crew asks -a`",
    "ARTIFACT_NOT_FOUND": "see `crew artifacts RUN`",
    "AGENT_NOT_FOUND": "see `crew agents`",
    "RUN_NOT_FINISHED": "end it first: crew cancel RUN",
    "TOKEN_MISSING": "`crewd where` tells where a token is looked for",
    "TOKEN_INVALID": "`crewd where` tells which token is used",
    "UNKNOWN_FIELD": "the daemon is older than this command: crewd stop && crewd ensure",
}

# A name in a run or a catalog that leads nowhere; the daemon has no reason of its own for it.
_MISSING = re.compile(r"^(?:\S+: )?there is no (team|workflow|skill)\b")


def untold(error: CrewdError) -> list[Violation]:
    """Give the violations that say more than the error's message does."""
    if error.reason == "GRAPH_CYCLE":
        return []
    told = str(error)
    if error.reason == "UNKNOWN_FIELD":
        return [each for each in error.violations if f"field {each.field};" not in told]
    return [each for each in error.violations if each.description not in told]


def _is_cwd_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # only whether there is one
    except FileNotFoundError:
        return True
    return False


def _hint(error: CrewdError) -> str:
    if isinstance(error, NoDaemonError):
        pid = error.metadata.get("pid")
        return "start it: crewd ensure" if pid is None else f"kill -9 {pid}, then: crewd ensure"
    missing = _MISSING.search(str(error)) if error.reason == "SPEC_INVALID" else None
    return _HINTS.get(error.reason, "") if missing is None else f"see `crew {missing[1]}s`"


def _code(error: CrewdError) -> Exit:
    if isinstance(error, NoDaemonError) or error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Exit.NO_DAEMON
    if isinstance(error, SequenceError) or error.code is grpc.StatusCode.INTERNAL:
        return Exit.BUG
    return Exit.USAGE if error.reason in _INVALID_SPEC else Exit.REFUSED
