"""What can go wrong, by reason.

Branch on the class or on `reason`; the message is for people. Reasons are those of
`crewd.v1.ErrorReason` without the prefix; an unknown one is judged by its code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
    RetryInfo,
)
from google.rpc.status_pb2 import Status

from crewd_client.v1.ask_pb2 import Ask

DOMAIN = "crewd"
_DETAILS_KEY = "grpc-status-details-bin"
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with a request: the field's path and why."""

    field: str
    description: str


@dataclass(eq=False, kw_only=True)
class CrewdError(Exception):
    """A call did not do what it was to do."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    violations: tuple[Violation, ...] = ()
    ask: Ask | None = None
    retry_after: timedelta | None = None

    def __str__(self) -> str:
        return self.message or self.reason or self.code.name


class InvalidRequestError(CrewdError):
    """The request itself is wrong: `violations` tell where."""


class NotFoundError(CrewdError):
    """There is no such run, task, ask or artifact."""


class StatusConflictError(CrewdError):
    """The present state does not allow it."""


class AskSettledError(CrewdError):
    """The ask was settled before; `ask` is how."""


class RequestIdReusedError(CrewdError):
    """The request id was used for another request."""


class CursorExpiredError(CrewdError):
    """The cursor is of another store, or beyond the log: read the state and watch from there."""


class AccessError(CrewdError):
    """The token is missing, not valid, or does not allow the call."""


class UnavailableError(CrewdError):
    """The daemon is starting or ending; the call was tried again as long as allowed."""


class NoDaemonError(UnavailableError):
    """No daemon answers, or another one than the one meant."""


class SequenceError(CrewdError):
    """A watch has a hole or a repetition: what was built from its events is wrong."""


def translate(error: grpc.aio.AioRpcError) -> CrewdError:
    """Turn a failed call's status and details into an error of ours."""
    details = _details(error)
    info = _unpack(details, ErrorInfo)
    code = error.code()
    reason = info.reason if info is not None and info.domain == DOMAIN else ""
    bad, retry = _unpack(details, BadRequest), _unpack(details, RetryInfo)
    message = error.details() or ""
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and not reason and _is_too_large(message):
        reason, message = "REQUEST_TOO_LARGE", f"the request is too large: {message}"
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, CrewdError)
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        kind = NoDaemonError
    return kind(
        code=code,
        message=message,
        reason=reason,
        metadata=dict(info.metadata) if info is not None else {},
        violations=tuple(
            Violation(each.field, each.description)
            for each in (bad.field_violations if bad else ())
        ),
        ask=_unpack(details, Ask),
        retry_after=retry.retry_delay.ToTimedelta() if retry is not None else None,
    )


_BY_REASON: dict[str, type[CrewdError]] = {
    "ASK_SETTLED": AskSettledError,
    "CURSOR_EXPIRED": CursorExpiredError,
    "REQUEST_ID_REUSED": RequestIdReusedError,
    "REQUEST_TOO_LARGE": InvalidRequestError,
}

_BY_CODE: dict[grpc.StatusCode, type[CrewdError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.FAILED_PRECONDITION: StatusConflictError,
    grpc.StatusCode.UNAUTHENTICATED: AccessError,
    grpc.StatusCode.PERMISSION_DENIED: AccessError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
}


def _is_too_large(message: str) -> bool:
    """Tell whether the daemon's gRPC refused a request; an answer may be too large as well."""
    return "message larger than max" in message and not message.startswith("CLIENT:")


def _details(error: grpc.aio.AioRpcError) -> list[Any]:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return list(Status.FromString(value).details)
            except DecodeError:
                return []
    return []


def _unpack(details: list[Any], kind: type[M]) -> M | None:
    message = kind()
    for detail in details:
        if detail.TypeName() == kind.DESCRIPTOR.full_name and detail.Unpack(message):
            return message
    return None
