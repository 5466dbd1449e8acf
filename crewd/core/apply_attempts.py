"""How facts about attempts, their messages and their questions change a run's rows."""

from __future__ import annotations

from dataclasses import replace

from crewd.core import events as e
from crewd.core import marks as m
from crewd.core.model import Attempt, Capabilities
from crewd.core.moves import move_task, touch, wait, waits
from crewd.core.spec import Adapter
from crewd.core.state import RunState
from crewd.core.units import Instant
from crewd.core.words import (
    ArtifactKind,
    AskStatus,
    AttemptStatus,
    Delivery,
    Outcome,
    TaskStatus,
)


def attempt_starting(state: RunState, event: e.AttemptStarting, now: Instant) -> None:
    task = state.tasks[event.task_id]
    attempt = Attempt(
        run_id=state.run.id,
        task_id=task.id,
        number=event.attempt,
        epoch=event.epoch,
        adapter=event.adapter,
        model=event.model,
        argv=event.argv,
        deadline=event.deadline,
        create_time=now,
    )
    state.attempts[task.id] = attempt
    state.live.add(task.id)
    state.arm(event.deadline, "attempt", task.id)
    state.changed.added_attempts[task.id, event.attempt] = attempt
    task.attempt = event.attempt
    task.capabilities = Capabilities(can_ask=task.spec.adapter is not Adapter.SCAFFOLD)
    task.start_time = task.start_time or now
    task.progress = None
    task.status_reason = ""
    task.not_before = None
    move_task(state, task, TaskStatus.RUNNING, now)


def attempt_started(state: RunState, event: e.AttemptStarted, now: Instant) -> None:
    attempt = _attempt(state, event.task_id, event.attempt)
    if attempt.status is AttemptStatus.STARTING:
        attempt.status = AttemptStatus.RUNNING
    attempt.pid = event.pid
    attempt.host = event.host
    attempt.argv = event.argv or attempt.argv
    attempt.start_time = now
    if event.speak_until is not None:
        attempt.stall_at = event.speak_until
        state.arm(event.speak_until, "attempt", event.task_id)


def attempt_introduced(state: RunState, mark: m.AttemptIntroduced, now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.worker_name = mark.name
    attempt.worker_version = mark.version
    attempt.model = mark.model or attempt.model
    attempt.session_id = mark.session_id or attempt.session_id
    task = state.tasks[mark.task_id]
    task.capabilities = mark.capabilities
    touch(state, task, now)


def attempt_stopping(state: RunState, event: e.AttemptStopping, now: Instant) -> None:
    attempt = _attempt(state, event.task_id, event.attempt)
    attempt.status = AttemptStatus.STOPPING
    if event.cancels or not attempt.stop_cause:
        attempt.stop_cause = event.cause
    attempt.deadline = attempt.linger_until = attempt.stall_at = None
    if event.force_until is not None:
        attempt.force_until = event.force_until
        state.arm(event.force_until, "attempt", event.task_id)
    task = state.tasks[event.task_id]
    if event.cancels and task.status is not TaskStatus.CANCELLING:
        move_task(state, task, TaskStatus.CANCELLING, now)


def result_recorded(state: RunState, mark: m.ResultRecorded, _now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.result = mark.result
    attempt.handed_in = mark.handed_in


def dismissed(state: RunState, mark: m.Dismissed, _now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.deadline = attempt.time_left = attempt.stall_at = None
    if attempt.status is not AttemptStatus.STOPPING:
        attempt.linger_until = mark.linger_until
        state.arm(mark.linger_until, "attempt", mark.task_id)


def nudged(state: RunState, mark: m.Nudged, _now: Instant) -> None:
    _attempt(state, mark.task_id, mark.attempt).nudges += 1


def result_rejected(state: RunState, mark: m.ResultRejected, _now: Instant) -> None:
    _attempt(state, mark.task_id, mark.attempt).rejections += 1


def artifact_recorded(state: RunState, event: e.ArtifactRecorded, now: Instant) -> None:
    artifact = replace(event.artifact)
    state.changed.artifacts.append(artifact)
    attempt = state.attempts.get(artifact.task_id)
    if attempt is None or attempt.number != artifact.attempt:
        return
    if artifact.kind is ArtifactKind.PROMPT:
        attempt.prompt_artifact_id = artifact.id
    elif artifact.kind is ArtifactKind.TRANSCRIPT:
        attempt.transcript_artifact_id = artifact.id
    state.changed.attempt(attempt)
    task = state.tasks[artifact.task_id]
    named = artifact.kind is ArtifactKind.RESULT and artifact.name == task.spec.output.name
    if named and task.result is not None and task.has_unkept_result:
        whole = "" if artifact.truncated else artifact.sha256
        task.result = replace(task.result, artifact_id=artifact.id, sha256=whole)
        state.keeping.asked.discard(task.id)
    touch(state, task, now)


def attempt_ended(state: RunState, event: e.AttemptEnded, now: Instant) -> None:
    attempt = _attempt(state, event.task_id, event.attempt)
    attempt.status = AttemptStatus.ENDED
    attempt.outcome = event.outcome
    attempt.cause = event.cause
    attempt.message = event.message
    attempt.retryable = event.retryable
    attempt.exit_code = event.exit_code
    attempt.signal = event.signal
    attempt.survivors = event.survivors
    attempt.result = event.result
    attempt.end_time = now
    attempt.deadline = attempt.linger_until = attempt.force_until = attempt.stall_at = None
    state.live.discard(event.task_id)
    state.promised.pop(event.task_id, None)
    state.promised.done.pop(event.task_id, None)
    for heir in [h for h, promise in state.promised.items() if promise.task_id == event.task_id]:
        del state.promised[heir]
    state.waiting.discard(event.task_id)
    left = state.outbox.pop(event.task_id, None)
    if left:
        state.changed.taken(event.task_id, event.attempt, max(left))
    task = state.tasks[event.task_id]
    task.current_tool = ""
    if event.outcome is not Outcome.COMPLETED:
        task.result = event.result
    touch(state, task, now)


def output_read(state: RunState, mark: m.OutputRead, now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.stdout_offset = mark.stdout_offset
    attempt.stderr_offset = mark.stderr_offset
    attempt.stdout_bytes = mark.stdout_bytes
    attempt.stderr_bytes = mark.stderr_bytes
    attempt.adapter_state = mark.adapter_state
    touch(state, state.tasks[mark.task_id], now)


def stall_moved(state: RunState, mark: m.StallMoved, _now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.stall_at = mark.stall_at
    state.arm(mark.stall_at, "attempt", mark.task_id)


def outbox_queued(state: RunState, mark: m.OutboxQueued, _now: Instant) -> None:
    row = mark.row
    attempt = _attempt(state, row.task_id, row.attempt)
    attempt.stdin_seq = row.seq
    state.outbox.setdefault(row.task_id, {})[row.seq] = row
    state.changed.outbox[row.task_id, row.attempt, row.seq] = row


def outbox_taken(state: RunState, mark: m.OutboxTaken, _now: Instant) -> None:
    rows = state.outbox.get(mark.task_id, {})
    for seq in [seq for seq in rows if seq <= mark.seq]:
        del rows[seq]
    state.changed.taken(mark.task_id, mark.attempt, mark.seq)


def clock_paused(state: RunState, mark: m.ClockPaused, _now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.deadline = None
    attempt.time_left = mark.time_left


def clock_resumed(state: RunState, mark: m.ClockResumed, _now: Instant) -> None:
    attempt = _attempt(state, mark.task_id, mark.attempt)
    attempt.deadline = mark.deadline
    attempt.time_left = None
    state.arm(mark.deadline, "attempt", mark.task_id)


def ask_opened(state: RunState, event: e.AskOpened, now: Instant) -> None:
    ask = replace(event.ask)
    state.add_ask(ask)
    state.changed.asks[ask.id] = ask
    state.run.open_ask_count += 1
    task = state.tasks[ask.task_id]
    task.open_ask_ids = (*task.open_ask_ids, ask.id)
    wait(state, task, now)


def ask_attached(state: RunState, event: e.AskAttached, now: Instant) -> None:
    ask = state.asks[event.ask_id]
    ask.attempt = event.attempt
    ask.worker_ref = event.worker_ref
    ask.channel = event.channel
    ask.delivery = Delivery.NONE if ask.status is AskStatus.OPEN else Delivery.QUEUED
    state.changed.asks[ask.id] = ask
    if ask.status is AskStatus.OPEN:
        wait(state, state.tasks[ask.task_id], now)


def ask_settled(state: RunState, event: e.AskSettled, now: Instant) -> None:
    ask = state.asks[event.ask_id]
    ask.status = event.outcome
    ask.answer = event.answer
    ask.answer_masked = event.answer_masked
    ask.raw_text = event.raw_text
    ask.answered_by = event.by
    ask.settle_time = now
    ask.expire_time = None
    ask.delivery = event.delivery
    state.changed.asks[ask.id] = ask
    state.run.open_ask_count -= 1
    task = state.tasks[ask.task_id]
    task.open_ask_ids = tuple(i for i in task.open_ask_ids if i != ask.id)
    if task.status is TaskStatus.WAITING and not waits(state, task):
        move_task(state, task, TaskStatus.RUNNING, now)
    else:
        touch(state, task, now)


def ask_delivered(state: RunState, event: e.AskDelivered, _now: Instant) -> None:
    ask = state.asks[event.ask_id]
    ask.delivery = event.delivery
    if event.delivery is Delivery.UNDELIVERABLE:
        ask.raw_text = ""
    state.changed.asks[ask.id] = ask


def _attempt(state: RunState, task_id: str, number: int) -> Attempt:
    attempt = state.attempts[task_id]
    assert attempt.number == number, "facts are about the latest attempt"  # noqa: S101
    state.changed.attempt(attempt)
    return attempt
