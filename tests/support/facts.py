"""The events that tests expect most, without what they hardly ever say."""

from __future__ import annotations

from crewd.core.effects import ForgetWorker, StopWorker, WriteWorker
from crewd.core.events import (
    AskSettled,
    AttemptEnded,
    AttemptStarting,
    AttemptStopping,
    RunFinished,
    TaskFinished,
)
from crewd.core.model import Actor, Answer, Failure, Outbox, Result
from crewd.core.reports import Verdict
from crewd.core.spec import TaskSpec
from crewd.core.units import Instant
from crewd.core.words import (
    AskStatus,
    Cause,
    Delivery,
    OutboxKind,
    Outcome,
    RunStatus,
    TaskStatus,
)
from tests.support.builders import HOST_EPOCH, RUN_ID


def starting(
    task: TaskSpec, attempt: int = 1, *, deadline: Instant | None = None
) -> AttemptStarting:
    return AttemptStarting(
        task_id=task.id,
        attempt=attempt,
        adapter=task.adapter,
        epoch=HOST_EPOCH,
        argv=task.command,
        deadline=deadline,
    )


def ended(task_id: str, verdict: Verdict, attempt: int = 1) -> AttemptEnded:
    """The end of an attempt whose worker exited by itself."""
    good = verdict.outcome in {Outcome.COMPLETED, Outcome.NEEDS_ATTENTION}
    return AttemptEnded(
        task_id=task_id,
        attempt=attempt,
        outcome=verdict.outcome,
        cause=verdict.cause,
        message=verdict.message,
        retryable=verdict.retryable,
        exit_code=0 if good else 1,
        proof="exit",
        result=verdict.result,
    )


def stopped(task_id: str, message: str = "cancelled", attempt: int = 1) -> AttemptEnded:
    """The end of an attempt that the host stopped because its task was to end."""
    return AttemptEnded(
        task_id=task_id,
        attempt=attempt,
        outcome=Outcome.CANCELLED,
        cause=Cause.CANCELLED,
        message=message,
        signal=15,
        proof="stopped",
    )


def stopping(task_id: str, cause: str = "cancelled", attempt: int = 1) -> AttemptStopping:
    return AttemptStopping(task_id=task_id, attempt=attempt, cause=cause)


def stop(task_id: str, attempt: int = 1, *, grace_ms: int = 5000) -> StopWorker:
    return StopWorker(task_id=task_id, attempt=attempt, grace_ms=grace_ms)


def forget(task_id: str, attempt: int = 1) -> ForgetWorker:
    return ForgetWorker(task_id=task_id, attempt=attempt)


def completed(task_id: str, text: str = "done") -> TaskFinished:
    return TaskFinished(task_id=task_id, status=TaskStatus.COMPLETED, result=Result(text=text))


def failed(task_id: str, cause: Cause, message: str, *, retryable: bool = False) -> TaskFinished:
    return TaskFinished(
        task_id=task_id,
        status=TaskStatus.FAILED,
        reason=cause,
        message=message,
        error=Failure(reason=cause, message=message, task_id=task_id, retryable=retryable),
    )


def skipped(task_id: str, message: str, reason: str = "dependency") -> TaskFinished:
    return TaskFinished(task_id=task_id, status=TaskStatus.SKIPPED, reason=reason, message=message)


def cancelled(task_id: str, message: str, reason: str = "cancelled") -> TaskFinished:
    return TaskFinished(
        task_id=task_id, status=TaskStatus.CANCELLED, reason=reason, message=message
    )


def attention(task_id: str) -> TaskFinished:
    return TaskFinished(
        task_id=task_id,
        status=TaskStatus.NEEDS_ATTENTION,
        reason="no_result",
        message="ended without handing in a result",
    )


def settled(  # noqa: PLR0913 - the parts of the event
    ask_id: str,
    outcome: AskStatus,
    *,
    attempt: int = 1,
    answer: Answer | None = None,
    by: Actor | None = None,
    delivery: Delivery = Delivery.NONE,
) -> AskSettled:
    """The end of the question `ask_id` of task `a`."""
    return AskSettled(
        ask_id=ask_id,
        task_id="a",
        attempt=attempt,
        outcome=outcome,
        answer=answer,
        by=by,
        delivery=delivery,
    )


def run_completed(text: str = "done") -> RunFinished:
    return RunFinished(status=RunStatus.COMPLETED, result=Result(text=text))


def run_failed(task_id: str, cause: Cause, why: str, *, retryable: bool = False) -> RunFinished:
    message = f"task {task_id} failed: {why}"
    return RunFinished(
        status=RunStatus.FAILED,
        reason="task_failed",
        message=message,
        error=Failure(reason=cause, message=message, task_id=task_id, retryable=retryable),
        failed_task_ids=(task_id,),
    )


def write(  # noqa: PLR0913 - the parts of the row
    task_id: str, seq: int, kind: OutboxKind, body: str, *, ref: str = "", attempt: int = 1
) -> WriteWorker:
    return WriteWorker(
        Outbox(
            run_id=RUN_ID,
            task_id=task_id,
            attempt=attempt,
            seq=seq,
            kind=kind,
            body=body,
            ref=ref,
        )
    )
