"""The only way a run's state changes: one event or mark at a time, checked against the tables.

Folding a run's events and marks over an empty state gives its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from crewd.core import apply_attempts as a
from crewd.core import events as e
from crewd.core import marks as m
from crewd.core.moves import move_run, move_task, touch
from crewd.core.state import RunState
from crewd.core.units import Instant, later
from crewd.core.words import RunStatus, TaskStatus


def apply(state: RunState, fact: e.Event | m.Mark, now: Instant) -> None:
    """Change the rows and indexes as the fact says."""
    _HANDLERS[type(fact)](state, fact, now)
    state.changed.run = True
    state.run.update_time = now
    if not isinstance(fact, m.Mark):
        state.run.last_run_sequence += 1


def _run_created(state: RunState, event: e.RunCreated, _now: Instant) -> None:
    state.run = replace(event.run, task_counts=dict(event.run.task_counts))
    state.changed.run_is_new = True


def _tasks_added(state: RunState, event: e.TasksAdded, _now: Instant) -> None:
    tasks = [replace(task) for task in event.tasks]
    state.add_tasks(tasks)
    counts = state.run.task_counts
    for task in tasks:
        counts[task.status] = counts.get(task.status, 0) + 1
        state.changed.added_tasks[task.id] = task
        state.queue(task)


def _run_started(state: RunState, _event: e.RunStarted, now: Instant) -> None:
    if state.run.status is not RunStatus.RUNNING:
        move_run(state, RunStatus.RUNNING)
    state.run.start_time = now
    _arm_duration(state, now)


def _arm_duration(state: RunState, now: Instant) -> None:
    run = state.run
    if run.spec.limits.max_duration is not None:
        run.deadline = later(now, run.spec.limits.max_duration)
        state.arm(run.deadline, "run", "")


def _run_blocked(state: RunState, event: e.RunBlocked, _now: Instant) -> None:
    move_run(state, RunStatus.BLOCKED)
    state.run.status_reason = event.reason
    state.run.status_message = event.detail
    state.run.deadline = None


def _run_cancel_requested(state: RunState, event: e.RunCancelRequested, _now: Instant) -> None:
    run = state.run
    if run.status is not RunStatus.CANCELLING:
        move_run(state, RunStatus.CANCELLING)
    run.stopping = "cancel"
    run.requeueing = ""
    run.deadline = None
    run.cancel_reason = event.reason
    run.cancel_force = run.cancel_force or event.force
    run.status_reason = "cancel_requested"
    run.status_message = event.reason
    state.sweep_at = 0
    state.revivable.clear()


def _run_stopping(state: RunState, mark: m.RunStopping, _now: Instant) -> None:
    state.run.stopping = mark.cause
    state.run.status_reason = mark.cause
    state.run.status_message = mark.message
    state.run.requeueing = ""
    state.run.deadline = None
    state.sweep_at = 0
    state.revivable.clear()


def _run_resumed(state: RunState, event: e.RunResumed, now: Instant) -> None:
    run = state.run
    if run.status is not RunStatus.RUNNING:
        move_run(state, RunStatus.RUNNING)
        run.limits_reached = ()
    run.stopping = ""
    run.cancel_reason = ""
    run.cancel_force = False
    if run.requeueing != "all":
        run.requeueing = event.requeueing or run.requeueing
    run.status_reason = ""
    run.status_message = ""
    run.error = None
    run.result = None
    run.end_time = None
    run.resume_count += event.cause in {"resume", "retry"}
    state.revivable.clear()
    if run.requeueing:
        state.revivable.extend(t.id for t in state.tasks.values() if state.is_revivable(t))
    if run.start_time is not None and run.deadline is None:
        _arm_duration(state, now)


def _requeue_ended(state: RunState, _mark: m.RequeueEnded, _now: Instant) -> None:
    state.run.requeueing = ""


def _run_finished(state: RunState, event: e.RunFinished, now: Instant) -> None:
    move_run(state, event.status)
    run = state.run
    run.status_reason = event.reason
    run.status_message = event.message
    run.result = event.result
    run.error = event.error
    run.end_time = now
    run.deadline = None
    run.stopping = ""


def _run_noted(_state: RunState, _event: e.Event, _now: Instant) -> None:
    """Change nothing: the event only tells."""


def _run_deleted(state: RunState, _event: e.RunDeleted, _now: Instant) -> None:
    state.changed.delete_run = True


def _limit_reached(state: RunState, event: e.LimitReached, _now: Instant) -> None:
    state.run.limits_reached = (*state.run.limits_reached, f"{event.reason}:{event.action}")


def _task_retry_scheduled(state: RunState, event: e.TaskRetryScheduled, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.not_before = event.not_before
    if event.spends:
        task.spent_attempts += 1
    task.status_reason = "backoff"
    move_task(state, task, TaskStatus.QUEUED, now)


def _task_requeued(state: RunState, event: e.TaskRequeued, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.status_reason = event.cause
    task.status_message = event.note
    task.not_before = None
    task.end_time = None
    task.error = None
    task.result = None
    if event.cause != "backoff_over":
        task.spent_attempts = 0
    if task.status is TaskStatus.QUEUED:
        state.unqueue(task.id)
        task.update_time = now
        state.changed.task(task)
        state.queue(task)
    else:
        move_task(state, task, TaskStatus.QUEUED, now)
    if state.run.requeueing:
        state.revivable.extend(state.dependents.get(task.id, ()))


def _task_finished(state: RunState, event: e.TaskFinished, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.status_reason = event.reason
    task.status_message = event.message
    task.error = event.error
    task.not_before = None
    task.current_tool = ""
    task.end_time = now
    task.resolution_note = event.note
    if event.result is not None:
        task.result = event.result
    move_task(state, task, event.status, now)
    if task.has_unkept_result:
        state.keeping.unasked.append(task.id)


def _task_progressed(state: RunState, event: e.TaskProgressed, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.progress = event.progress
    state.run.progress = event.progress
    touch(state, task, now)


def _task_active(
    state: RunState,
    event: e.MessagePosted | e.ProviderErrorReported | e.SteerUpdated,
    now: Instant,
) -> None:
    touch(state, state.tasks[event.task_id], now)


def _tool_started(state: RunState, event: e.ToolStarted, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.current_tool = event.name
    touch(state, task, now)


def _tool_ended(state: RunState, event: e.ToolEnded, now: Instant) -> None:
    task = state.tasks[event.task_id]
    task.current_tool = ""
    touch(state, task, now)


def _usage_reported(state: RunState, event: e.UsageReported, now: Instant) -> None:
    attempt = state.attempts[event.task_id]
    attempt.usage = attempt.usage.plus(event.delta)
    attempt.model = event.model or attempt.model
    state.changed.attempt(attempt)
    task = state.tasks[event.task_id]
    task.usage = task.usage.plus(event.delta)
    state.run.usage = state.run.usage.plus(event.delta)
    touch(state, task, now)


_HANDLERS: Mapping[type, Callable[[RunState, Any, Instant], None]] = {
    e.RunCreated: _run_created,
    e.TasksAdded: _tasks_added,
    e.RunStarted: _run_started,
    e.RunBlocked: _run_blocked,
    e.RunCancelRequested: _run_cancel_requested,
    m.RunStopping: _run_stopping,
    e.RunResumed: _run_resumed,
    m.RequeueEnded: _requeue_ended,
    e.RunFinished: _run_finished,
    e.RunRecovered: _run_noted,
    e.RunDeleted: _run_deleted,
    e.LimitReached: _limit_reached,
    e.WarningRaised: _run_noted,
    e.TaskRetryScheduled: _task_retry_scheduled,
    e.TaskRequeued: _task_requeued,
    e.TaskFinished: _task_finished,
    e.TaskHeld: _run_noted,
    e.TaskProgressed: _task_progressed,
    e.MessagePosted: _task_active,
    e.ToolStarted: _tool_started,
    e.ToolEnded: _tool_ended,
    e.UsageReported: _usage_reported,
    e.ProviderErrorReported: _task_active,
    e.AttemptStarting: a.attempt_starting,
    e.AttemptStarted: a.attempt_started,
    m.AttemptIntroduced: a.attempt_introduced,
    e.AttemptStopping: a.attempt_stopping,
    m.ResultRecorded: a.result_recorded,
    m.Dismissed: a.dismissed,
    m.Nudged: a.nudged,
    m.ResultRejected: a.result_rejected,
    e.AttemptEnded: a.attempt_ended,
    m.OutputRead: a.output_read,
    m.StallMoved: a.stall_moved,
    m.OutboxQueued: a.outbox_queued,
    m.OutboxTaken: a.outbox_taken,
    m.ClockPaused: a.clock_paused,
    m.ClockResumed: a.clock_resumed,
    e.AskOpened: a.ask_opened,
    e.AskAttached: a.ask_attached,
    e.AskSettled: a.ask_settled,
    e.AskDelivered: a.ask_delivered,
    e.SteerUpdated: _task_active,
    e.ArtifactRecorded: a.artifact_recorded,
}
