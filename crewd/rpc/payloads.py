"""What happened, as the payload of an event: one small function for each kind.

Each sets its field of an event and bounds every text by `texts` bytes, which is no more than
`LONG`: an event that comes out too large is made again with less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from crewd.core import events as e
from crewd.core.model import NO_USAGE, Run, Task
from crewd.core.redaction.keys import is_secret_key
from crewd.core.redaction.redactor import redact, redact_arguments
from crewd.core.redaction.spans import MASK
from crewd.core.words import TaskStatus
from crewd.rpc import convert, enums
from crewd.rpc.wire import KIB, cut, cut_all, stamp, timestamp
from crewd.v1 import event_pb2, run_event_pb2, run_pb2, task_event_pb2, task_pb2
from crewd.v1.event_pb2 import Event

LONG: Final = 16 * KIB
"""The most bytes of a text that is worth its room: an answer, a message, a result."""
LISTED: Final = 100
"""The most ids or processes that an event lists."""

DEPENDENCIES: Final = 1000
"""The most dependencies that the event of a task names; the task itself has them all."""

_LONGEST_SECRET: Final = 16 * KIB

Fill = Callable[[Event, Any, int], None]

_CAUSES: Final[Mapping[str, task_event_pb2.TasksAddedCause.ValueType]] = {
    name.removeprefix("TASKS_ADDED_CAUSE_").lower(): number
    for name, number in task_event_pb2.TasksAddedCause.items()
}
_NEVER_TRIED: Final = frozenset({TaskStatus.SKIPPED, TaskStatus.CANCELLED})


def _run_created(to: Event, event: e.RunCreated, texts: int) -> None:
    limit = min(texts, convert.BRIEF)
    message = convert.run(event.run, texts=limit)
    _hide_run(message, event.run, limit)
    if texts < LONG:
        message.labels.clear()
    to.run_created.run.CopyFrom(message)


def _hide_run(message: run_pb2.Run, row: Run, limit: int) -> None:
    """Mask what the run's creator wrote: only they get it as they gave it."""
    message.title = _shown(row.title, limit)
    message.goal = _shown(row.spec.goal, limit)
    for name, value in row.spec.labels.items():
        message.labels[name] = MASK if is_secret_key(name) else redact(value)


def _hide_task(message: task_pb2.Task, row: Task, limit: int) -> None:
    message.title = redact(row.spec.title)
    message.prompt = _shown(row.spec.prompt, limit)
    command = redact_arguments(row.spec.command)
    if command != row.spec.command:
        message.command[:] = cut_all(command, limit)


def _shown(text: str, limit: int) -> str:
    """Mask first, then cut: what is left of a secret that was cut would not be known as one."""
    return cut(redact(cut(text, limit + _LONGEST_SECRET)), limit)


def _run_started(to: Event, _event: e.RunStarted, _texts: int) -> None:
    to.run_started.SetInParent()


def _run_blocked(to: Event, event: e.RunBlocked, texts: int) -> None:
    payload = to.run_blocked
    payload.reason = event.reason
    payload.detail = cut(event.detail, texts)
    payload.task_ids.extend(event.task_ids[:LISTED])


def _run_cancel_requested(to: Event, event: e.RunCancelRequested, texts: int) -> None:
    payload = to.run_cancel_requested
    payload.reason = cut(event.reason, texts)
    payload.mode = (
        run_event_pb2.CANCEL_MODE_FORCE if event.force else run_event_pb2.CANCEL_MODE_GRACEFUL
    )


def _run_resumed(to: Event, event: e.RunResumed, texts: int) -> None:
    payload = to.run_resumed
    payload.cause = event.cause
    payload.requeued_task_ids.extend(event.requeued_task_ids[:LISTED])
    payload.note = cut(event.note, texts)


def _run_finished(to: Event, event: e.RunFinished, texts: int) -> None:
    payload = to.run_finished
    payload.reason = event.reason
    payload.message = cut(event.message, texts)
    payload.failed_task_ids.extend(event.failed_task_ids[:LISTED])
    payload.survivors.extend(convert.survivors(event.survivors[:LISTED]))
    if event.result is not None:
        text = cut(event.result.text, texts)
        payload.result.text = text
        payload.result.truncated = event.result.truncated or text is not event.result.text
        payload.result.artifact_id = event.result.artifact_id
    failure = convert.failure(event.error, texts)
    if failure is not None:
        payload.error.CopyFrom(failure)


def _run_recovered(to: Event, event: e.RunRecovered, _texts: int) -> None:
    payload = to.run_recovered
    payload.SetInParent()
    payload.adopted.extend(event.adopted[:LISTED])
    payload.lost.extend(event.lost[:LISTED])


def _run_deleted(to: Event, event: e.RunDeleted, _texts: int) -> None:
    to.run_deleted.SetInParent()
    to.run_deleted.freed_bytes = event.freed_bytes


def _tasks_added(to: Event, event: e.TasksAdded, texts: int) -> None:
    payload = to.tasks_added
    payload.cause = _CAUSES.get(event.cause, task_event_pb2.TASKS_ADDED_CAUSE_UNSPECIFIED)
    listed = DEPENDENCIES * texts // LONG
    for row in event.tasks:
        limit = min(texts, convert.BRIEF)
        message = convert.task(row, texts=limit, listed=listed)
        _hide_task(message, row, limit)
        if texts < LONG:
            _shorten(message, texts)
        payload.tasks.append(message)


def _shorten(message: task_pb2.Task, texts: int) -> None:
    message.title = cut(message.title, texts)
    message.role = cut(message.role, texts)
    message.phase = cut(message.phase, texts)
    message.workspace.cwd = cut(message.workspace.cwd, texts)


def _task_retry_scheduled(to: Event, event: e.TaskRetryScheduled, _texts: int) -> None:
    payload = to.task_retry_scheduled
    payload.next_attempt = event.next_attempt
    stamp(payload.not_before, event.not_before)
    payload.cause = convert.cause(event.cause)
    payload.spends = event.spends


def _task_requeued(to: Event, event: e.TaskRequeued, texts: int) -> None:
    payload = to.task_requeued
    payload.cause = event.cause
    payload.note = cut(event.note, texts)


def _task_finished(to: Event, event: e.TaskFinished, texts: int) -> None:
    payload = to.task_finished
    payload.reason = event.reason
    payload.message = cut(event.message, texts)
    payload.note = cut(event.note, texts)
    if event.result is not None:
        payload.result.CopyFrom(convert.task_result(event.result, texts=texts))
        payload.evidence.result_present = True
    elif event.status not in _NEVER_TRIED:
        payload.evidence.SetInParent()
    failure = convert.failure(event.error, texts)
    if failure is not None:
        payload.error.CopyFrom(failure)


def _task_held(to: Event, event: e.TaskHeld, _texts: int) -> None:
    payload = to.task_held
    payload.reason = enums.HOLD_REASON.get(event.reason, task_pb2.HOLD_REASON_UNSPECIFIED)
    if event.until is not None:
        stamp(payload.until, event.until)


def _attempt_starting(to: Event, event: e.AttemptStarting, _texts: int) -> None:
    payload = to.attempt_starting
    payload.adapter = event.adapter
    payload.model = event.model
    payload.epoch = event.epoch


def _attempt_started(to: Event, event: e.AttemptStarted, _texts: int) -> None:
    payload = to.attempt_started
    payload.SetInParent()
    payload.pid = event.pid
    payload.host = event.host


def _attempt_stopping(to: Event, event: e.AttemptStopping, _texts: int) -> None:
    to.attempt_stopping.cause = event.cause


def _attempt_ended(to: Event, event: e.AttemptEnded, texts: int) -> None:
    payload = to.attempt_ended
    payload.outcome = enums.OUTCOME[event.outcome]
    if event.cause is not None:
        payload.cause = enums.CAUSE[event.cause]
        payload.message = cut(event.message, texts)
        payload.retryable = event.retryable
    if event.exit_code is not None:
        payload.exit_code = event.exit_code
    if event.signal is not None:
        payload.signal = event.signal
    if event.usage is not NO_USAGE:
        payload.usage.CopyFrom(convert.usage(event.usage))
    payload.stdout_bytes = event.stdout_bytes
    payload.stderr_bytes = event.stderr_bytes
    payload.proof = event.proof
    if event.survivors:
        payload.survivors.extend(convert.survivors(event.survivors[:LISTED]))


def _task_progressed(to: Event, event: e.TaskProgressed, texts: int) -> None:
    payload = to.task_progressed.progress
    if event.progress.percent is not None:
        payload.percent = event.progress.percent
    payload.step = cut(event.progress.step, texts)
    payload.message = cut(event.progress.message, texts)
    stamp(payload.update_time, event.progress.update_time)


def _message_posted(to: Event, event: e.MessagePosted, texts: int) -> None:
    payload = to.message_posted
    payload.role = event.role
    payload.text = text = cut(event.text, texts)
    payload.truncated = event.truncated or text is not event.text


def _tool_started(to: Event, event: e.ToolStarted, texts: int) -> None:
    payload = to.tool_started
    payload.tool_id = cut(event.tool_id, texts)
    payload.name = cut(event.name, texts)
    payload.title = cut(event.title, texts)


def _tool_ended(to: Event, event: e.ToolEnded, texts: int) -> None:
    payload = to.tool_ended
    payload.tool_id = cut(event.tool_id, texts)
    payload.is_error = event.is_error
    payload.detail = cut(event.detail, texts)


def _usage_reported(to: Event, event: e.UsageReported, _texts: int) -> None:
    payload = to.usage_reported
    payload.delta.CopyFrom(convert.usage(event.delta))
    payload.model = event.model


def _provider_error_reported(to: Event, event: e.ProviderErrorReported, texts: int) -> None:
    payload = to.provider_error_reported
    payload.cause = enums.CAUSE[event.cause]
    payload.message = cut(event.message, texts)
    if event.retry_time is not None:
        payload.retry_time.CopyFrom(timestamp(event.retry_time))


def _ask_opened(to: Event, event: e.AskOpened, texts: int) -> None:
    to.ask_opened.ask.CopyFrom(convert.ask(event.ask, texts=texts))


def _ask_attached(to: Event, event: e.AskAttached, texts: int) -> None:
    payload = to.ask_attached
    payload.ask_id = event.ask_id
    payload.worker_ref = cut(event.worker_ref, texts)


def _ask_settled(to: Event, event: e.AskSettled, texts: int) -> None:
    payload = to.ask_settled
    payload.ask_id = event.ask_id
    payload.outcome = enums.ASK_STATUS[event.outcome]
    answer = convert.answer(event.answer, texts)
    if answer is not None:
        payload.answer.CopyFrom(answer)


def _ask_delivered(to: Event, event: e.AskDelivered, _texts: int) -> None:
    payload = to.ask_delivered
    payload.ask_id = event.ask_id
    payload.delivery = enums.DELIVERY[event.delivery]


def _steer_updated(to: Event, event: e.SteerUpdated, texts: int) -> None:
    payload = to.steer_updated
    payload.steer_id = event.steer_id
    payload.status = enums.STEER_STATUS.get(event.status, task_pb2.STEER_STATUS_UNSPECIFIED)
    payload.text = cut(event.text, texts)


def _artifact_recorded(to: Event, event: e.ArtifactRecorded, texts: int) -> None:
    message = convert.artifact(event.artifact)
    message.source_path = cut(message.source_path, texts)
    message.description = cut(message.description, texts)
    to.artifact_recorded.artifact.CopyFrom(message)


def _limit_reached(to: Event, event: e.LimitReached, _texts: int) -> None:
    payload = to.limit_reached
    payload.reason = event.reason
    payload.used = event.used
    payload.max = event.maximum
    payload.action = event.action


def _warning_raised(to: Event, event: e.WarningRaised, texts: int) -> None:
    payload = to.warning_raised
    payload.code = event.code
    payload.message = cut(event.message, texts)


FILLS: Final[Mapping[type[object], Fill]] = {
    e.RunCreated: _run_created,
    e.RunStarted: _run_started,
    e.RunBlocked: _run_blocked,
    e.RunCancelRequested: _run_cancel_requested,
    e.RunResumed: _run_resumed,
    e.RunFinished: _run_finished,
    e.RunRecovered: _run_recovered,
    e.RunDeleted: _run_deleted,
    e.TasksAdded: _tasks_added,
    e.TaskRetryScheduled: _task_retry_scheduled,
    e.TaskRequeued: _task_requeued,
    e.TaskFinished: _task_finished,
    e.TaskHeld: _task_held,
    e.AttemptStarting: _attempt_starting,
    e.AttemptStarted: _attempt_started,
    e.AttemptStopping: _attempt_stopping,
    e.AttemptEnded: _attempt_ended,
    e.TaskProgressed: _task_progressed,
    e.MessagePosted: _message_posted,
    e.ToolStarted: _tool_started,
    e.ToolEnded: _tool_ended,
    e.UsageReported: _usage_reported,
    e.ProviderErrorReported: _provider_error_reported,
    e.AskOpened: _ask_opened,
    e.AskAttached: _ask_attached,
    e.AskSettled: _ask_settled,
    e.AskDelivered: _ask_delivered,
    e.SteerUpdated: _steer_updated,
    e.ArtifactRecorded: _artifact_recorded,
    e.LimitReached: _limit_reached,
    e.WarningRaised: _warning_raised,
}
KINDS: Final[frozenset[str]] = frozenset(
    field.name for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"].fields
)
"""Every kind there is, as the names a filter may use."""
