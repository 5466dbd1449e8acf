"""What crewd refuses, each with a reason that clients branch on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The values of `crewd.v1.ErrorReason`, without its prefix."""

    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    ASK_NOT_FOUND = "ASK_NOT_FOUND"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    SPEC_INVALID = "SPEC_INVALID"
    GRAPH_CYCLE = "GRAPH_CYCLE"
    GRAPH_UNKNOWN_TASK = "GRAPH_UNKNOWN_TASK"
    CWD_INVALID = "CWD_INVALID"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    ANSWER_NOT_ALLOWED = "ANSWER_NOT_ALLOWED"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"  # noqa: S105 - the name of a reason
    WORKER_NOT_FOUND = "WORKER_NOT_FOUND"
    RUN_STATUS_CONFLICT = "RUN_STATUS_CONFLICT"
    TASK_STATUS_CONFLICT = "TASK_STATUS_CONFLICT"
    RUN_NOT_FINISHED = "RUN_NOT_FINISHED"
    NOT_STEERABLE = "NOT_STEERABLE"
    DISK_LOW = "DISK_LOW"
    NOT_TRUSTED = "NOT_TRUSTED"
    ASK_SETTLED = "ASK_SETTLED"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    ARTIFACT_DAMAGED = "ARTIFACT_DAMAGED"
    TOKEN_MISSING = "TOKEN_MISSING"  # noqa: S105 - the name of a reason
    TOKEN_INVALID = "TOKEN_INVALID"  # noqa: S105 - the name of a reason
    SCOPE_DENIED = "SCOPE_DENIED"
    DRAINING = "DRAINING"
    RECOVERING = "RECOVERING"
    QUEUE_FULL = "QUEUE_FULL"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Violation:
    """One field that is wrong: its path as in run.yaml (`tasks[2].command`) and what to do."""

    field: str
    description: str


class CrewdError(Exception):
    """A refusal. The message names the thing, the place and the way out; nothing was changed."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        violations: Sequence[Violation] = (),
        **metadata: str,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.violations = tuple(violations)
        self.metadata: Mapping[str, str] = metadata
