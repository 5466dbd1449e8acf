"""Refusals on the wire: one table of codes, and the details that clients branch on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # pyright: ignore[reportMissingTypeStubs]
from grpc import StatusCode

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.rpc.wire import KIB, cut, size_of
from crewd.v1 import ask_pb2

DOMAIN: Final = "crewd"
DETAILS_KEY: Final = "grpc-status-details-bin"
DETAILS_BYTES: Final = 4 * KIB
"""Details ride in trailers, whose room is small."""
MESSAGE_BYTES: Final = 600
_METADATA_BYTES: Final = 600
_VIOLATION_BYTES: Final = 400
_RETRY_SECONDS: Final = 1
_ASK_TEXT_BYTES: Final = (1024, 256, 64, 0)

CODES: Final[Mapping[Reason, StatusCode]] = {
    Reason.RUN_NOT_FOUND: StatusCode.NOT_FOUND,
    Reason.TASK_NOT_FOUND: StatusCode.NOT_FOUND,
    Reason.ASK_NOT_FOUND: StatusCode.NOT_FOUND,
    Reason.ARTIFACT_NOT_FOUND: StatusCode.NOT_FOUND,
    Reason.AGENT_NOT_FOUND: StatusCode.NOT_FOUND,
    Reason.SPEC_INVALID: StatusCode.INVALID_ARGUMENT,
    Reason.GRAPH_CYCLE: StatusCode.INVALID_ARGUMENT,
    Reason.GRAPH_UNKNOWN_TASK: StatusCode.INVALID_ARGUMENT,
    Reason.CWD_INVALID: StatusCode.INVALID_ARGUMENT,
    Reason.UNKNOWN_FIELD: StatusCode.INVALID_ARGUMENT,
    Reason.REQUEST_TOO_LARGE: StatusCode.INVALID_ARGUMENT,
    Reason.ANSWER_NOT_ALLOWED: StatusCode.INVALID_ARGUMENT,
    Reason.PAGE_TOKEN_INVALID: StatusCode.INVALID_ARGUMENT,
    Reason.WORKER_NOT_FOUND: StatusCode.FAILED_PRECONDITION,
    Reason.RUN_STATUS_CONFLICT: StatusCode.FAILED_PRECONDITION,
    Reason.TASK_STATUS_CONFLICT: StatusCode.FAILED_PRECONDITION,
    Reason.RUN_NOT_FINISHED: StatusCode.FAILED_PRECONDITION,
    Reason.NOT_STEERABLE: StatusCode.FAILED_PRECONDITION,
    Reason.DISK_LOW: StatusCode.FAILED_PRECONDITION,
    Reason.NOT_TRUSTED: StatusCode.FAILED_PRECONDITION,
    Reason.ASK_SETTLED: StatusCode.ABORTED,
    Reason.REQUEST_ID_REUSED: StatusCode.ALREADY_EXISTS,
    Reason.CURSOR_EXPIRED: StatusCode.OUT_OF_RANGE,
    Reason.OFFSET_OUT_OF_RANGE: StatusCode.OUT_OF_RANGE,
    Reason.ARTIFACT_DAMAGED: StatusCode.DATA_LOSS,
    Reason.TOKEN_MISSING: StatusCode.UNAUTHENTICATED,
    Reason.TOKEN_INVALID: StatusCode.UNAUTHENTICATED,
    Reason.SCOPE_DENIED: StatusCode.PERMISSION_DENIED,
    Reason.DRAINING: StatusCode.UNAVAILABLE,
    Reason.RECOVERING: StatusCode.UNAVAILABLE,
    Reason.QUEUE_FULL: StatusCode.RESOURCE_EXHAUSTED,
    Reason.INTERNAL: StatusCode.INTERNAL,
}


_FIELDS: Final = {
    Reason.ANSWER_NOT_ALLOWED: "option_ids",
    Reason.PAGE_TOKEN_INVALID: "page_token",
}
"""What is wrong when the refusal itself names no field."""


class AskSettledError(CrewdError):
    """Somebody else was first; carries the ask as it was settled."""

    def __init__(self, ask: ask_pb2.Ask, message: str) -> None:
        status = ask_pb2.AskStatus.Name(ask.status).removeprefix("ASK_STATUS_").lower()
        super().__init__(Reason.ASK_SETTLED, message, ask_id=ask.id, status=status)
        self.ask = ask


class Refusal(NamedTuple):
    """A refusal as grpc takes it."""

    code: StatusCode
    message: str
    details: bytes
    """A `google.rpc.Status`, encoded."""


def refusal(error: CrewdError) -> Refusal:
    """Return code, message and details; what is long is cut, what is many is counted."""
    code = CODES[error.reason]
    message = cut(error.message, MESSAGE_BYTES)
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message=message)
    for detail in _details(error):
        packed = Any()
        packed.Pack(detail)
        if status.ByteSize() + packed.ByteSize() < DETAILS_BYTES:
            status.details.append(packed)
    return Refusal(code, message, status.SerializeToString())


def _details(error: CrewdError) -> Iterator[Message]:
    metadata = {k: cut(v, _METADATA_BYTES) for k, v in error.metadata.items()}
    yield error_details_pb2.ErrorInfo(reason=error.reason.value, domain=DOMAIN, metadata=metadata)
    code = CODES[error.reason]
    if error.violations or code is StatusCode.INVALID_ARGUMENT:
        field = _FIELDS.get(error.reason, "")
        yield _bad_request(error.violations or (Violation(field, error.message),))
    if code is StatusCode.UNAVAILABLE:
        yield error_details_pb2.RetryInfo(retry_delay=Duration(seconds=_RETRY_SECONDS))
    if isinstance(error, AskSettledError):
        yield _brief(error.ask)


def _bad_request(violations: Iterable[Violation]) -> error_details_pb2.BadRequest:
    bad = error_details_pb2.BadRequest()
    left = DETAILS_BYTES // 2
    rest = 0
    for violation in violations:
        description = cut(violation.description, _VIOLATION_BYTES)
        left -= size_of(violation.field) + size_of(description) + 8
        if left < 0:
            rest += 1
        else:
            bad.field_violations.add(field=violation.field, description=description)
    if rest:
        bad.field_violations.add(description=f"and {rest} more")
    return bad


def _brief(ask: ask_pb2.Ask) -> ask_pb2.Ask:
    """Return the ask with its texts cut so that it fits into the details."""
    brief = ask_pb2.Ask()
    for limit in _ASK_TEXT_BYTES:
        brief.CopyFrom(ask)
        brief.question = cut(ask.question, limit)
        brief.detail = cut(ask.detail, limit)
        brief.answer.text = cut(ask.answer.text, limit)
        brief.answer.note = cut(ask.answer.note, limit)
        for option in brief.options:
            option.label = cut(option.label, limit)
            option.description = cut(option.description, limit)
        if not ask.HasField("answer"):
            brief.ClearField("answer")
        if brief.ByteSize() < DETAILS_BYTES // 2:
            break
    return brief


def run_not_found(run_id: str) -> CrewdError:
    return CrewdError(Reason.RUN_NOT_FOUND, f"there is no run {cut(run_id, 100)!r}", run_id=run_id)


def task_not_found(run_id: str, task_id: str, attempt: int = 0) -> CrewdError:
    what = f"attempt {attempt} of task" if attempt else "task"
    return CrewdError(
        Reason.TASK_NOT_FOUND,
        f"run {run_id} has no {what} {cut(task_id, 100)!r}",
        run_id=run_id,
        task_id=task_id,
        attempt=str(attempt),
    )


def ask_not_found(ask_id: str) -> CrewdError:
    return CrewdError(Reason.ASK_NOT_FOUND, f"there is no ask {cut(ask_id, 100)!r}", ask_id=ask_id)


def artifact_not_found(*, artifact_id: str = "", run_id: str = "", name: str = "") -> CrewdError:
    if artifact_id:
        what = f"there is no artifact {cut(artifact_id, 100)!r}"
    else:
        what = f"run {run_id} has no artifact {cut(name, 200)!r}"
    return CrewdError(
        Reason.ARTIFACT_NOT_FOUND, what, artifact_id=artifact_id, run_id=run_id, name=name
    )


def offset_out_of_range(offset: int, size: int, what: str) -> CrewdError:
    return CrewdError(
        Reason.OFFSET_OUT_OF_RANGE,
        f"offset {offset} lies beyond the {what}, which has {size} bytes",
        offset=str(offset),
        size=str(size),
    )


def invalid(field: str, description: str) -> CrewdError:
    """Return the refusal of one field."""
    return CrewdError(
        Reason.SPEC_INVALID,
        f"{field}: {description}",
        violations=[Violation(field, description)],
    )


def too_large(field: str, limit: int) -> CrewdError:
    return CrewdError(
        Reason.REQUEST_TOO_LARGE,
        f"{field} has more than {limit} bytes",
        violations=[Violation(field, f"more than {limit} bytes")],
        field=field,
        limit=str(limit),
    )


def draining() -> CrewdError:
    return CrewdError(Reason.DRAINING, "the daemon is about to exit; call again in a moment")


def recovering() -> CrewdError:
    return CrewdError(
        Reason.RECOVERING, "the daemon is finding out what became of the work; call again"
    )
