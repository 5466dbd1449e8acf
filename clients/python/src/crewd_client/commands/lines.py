"""An event in a few words, for people."""

from __future__ import annotations

from collections.abc import Callable, Sized

from crewd_client.commands.terminal import (
    clean,
    clock,
    seconds_between,
    shorten,
    size,
    span,
    word,
)
from crewd_client.v1.artifact_pb2 import Artifact
from crewd_client.v1.ask_pb2 import Ask, AskAnswer
from crewd_client.v1.attempt_event_pb2 import AttemptEnded, AttemptStarted
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.failure_pb2 import Survivor
from crewd_client.v1.progress_pb2 import Progress
from crewd_client.v1.run_event_pb2 import LimitReached, RunFinished, RunRecovered
from crewd_client.v1.task_event_pb2 import TaskFinished, TaskRetryScheduled


def plain_line(event: Event) -> str | None:
    """Give the line a follower prints, if the event is worth one."""
    if event.kind in _UNTOLD:
        return None
    who = f"{event.task_id}: " if event.task_id else ""
    said = summary(event)
    said = shorten(said, _LINE_CHARACTERS) if event.kind in _WORKERS_WORDS else clean(said)
    return f"{clock(event.time)} {who}{said}".rstrip()


def summary(event: Event) -> str:
    """Say what happened."""
    say = _SAY.get(event.WhichOneof("payload") or "")
    return say(event) if say is not None else event.kind.replace("_", " ")


def progress_text(progress: Progress) -> str:
    percent = f"{progress.percent:.0f}%" if progress.HasField("percent") else ""
    return " ".join(part for part in (percent, progress.step, progress.message) if part)


def question(ask: Ask) -> str:
    choices = f" [{' | '.join(option.id for option in ask.options)}]" if ask.options else ""
    return f"{ask.question or ask.title}{choices}"


def survivors_text(survivors: list[Survivor]) -> str:
    return ", ".join(f"pid {each.pid} ({each.command})" for each in survivors)


_LINE_CHARACTERS = 500
# What workers say at any length; the transcript and `crew show` have it whole. Questions are not
# among it: who is to answer needs all of one.
_WORKERS_WORDS = {"message_posted", "task_finished", "task_progressed", "tool_started"}

# What a person who follows a run does not need to know; `crew events` has it.
_UNTOLD = {
    "ask_attached",
    "ask_delivered",
    "attempt_starting",
    "run_started",
    "task_requeued",
    "tasks_added",
    "tool_ended",
    "usage_reported",
}


def _joined(*parts: str) -> str:
    """Put parts together; one that repeats the end of those before says nothing."""
    said = ""
    for part in parts:
        if part and not f" {said}".lower().endswith(f" {part}".lower()):
            said = f"{said}: {part}" if said else part
    return said


def _run_finished(finished: RunFinished, status: str) -> str:
    left = f"; not proven gone: {survivors_text(list(finished.survivors))}"
    said = _joined(f"run {status}", finished.message or finished.reason)
    return said + (left if finished.survivors else "")


def _task_finished(finished: TaskFinished, status: str) -> str:
    return _joined(status, finished.message or finished.reason or finished.result.text)


def _retry(scheduled: TaskRetryScheduled) -> str:
    wait = -seconds_between(scheduled.not_before) if scheduled.HasField("not_before") else 0
    when = f" in {span(wait)}" if wait > 0 else ""
    return f"will be tried again{when}, attempt {scheduled.next_attempt}"


def _started(started: AttemptStarted, attempt: int) -> str:
    return f"attempt {attempt} started, pid {started.pid}"


def _ended(ended: AttemptEnded, attempt: int) -> str:
    said = _joined(f"attempt {attempt} {word(ended, 'outcome')}", ended.message)
    left = f"; not proven gone: {survivors_text(list(ended.survivors))}"
    return said + (left if ended.survivors else "")


def _recovered(recovered: RunRecovered) -> str:
    adopted, lost = len(recovered.adopted), _count(recovered.lost, "attempt")
    if recovered.lost and not adopted:
        return f"the host was lost: {lost} lost"
    counts = f" ({adopted} adopted, {len(recovered.lost)} lost)" if adopted else ""
    return f"a new daemon took the run over{counts}"


def _recorded(artifact: Artifact) -> str:
    return f"{artifact.id} {artifact.name} ({size(artifact.size_bytes)})"


def _limit(limit: LimitReached) -> str:
    used, most = str(limit.used), str(limit.max)
    if limit.reason == "max_duration":
        used, most = span(limit.used / 1e6), span(limit.max / 1e6)
    return f"{limit.reason} reached: {used} of {most}"


def _count(things: Sized, name: str) -> str:
    return f"1 {name}" if len(things) == 1 else f"{len(things)} {name}s"


def answer_text(answer: AskAnswer) -> str:
    return ", ".join(filter(None, [*answer.option_ids, answer.text]))


def _settled(event: Event) -> str:
    settled = event.ask_settled
    by = f" by {event.actor.name}" if event.actor.name else ""
    said = f"{settled.ask_id} {word(settled, 'outcome')}{by}"
    return _joined(said, answer_text(settled.answer))


_SAY: dict[str, Callable[[Event], str]] = {
    "run_created": lambda e: f"{e.run_id} created: {e.run_created.run.title}",
    "run_blocked": lambda e: _joined("run blocked", e.run_blocked.detail or e.run_blocked.reason),
    "run_cancel_requested": lambda e: _joined("run cancelling", e.run_cancel_requested.reason),
    "run_resumed": lambda e: _joined("run goes on", e.run_resumed.cause),
    "run_finished": lambda e: _run_finished(e.run_finished, word(e, "run_status")),
    "run_recovered": lambda e: _recovered(e.run_recovered),
    "tasks_added": lambda e: f"{_count(e.tasks_added.tasks, 'task')} added",
    "task_retry_scheduled": lambda e: _retry(e.task_retry_scheduled),
    "task_requeued": lambda e: _joined("queued again", e.task_requeued.cause),
    "task_finished": lambda e: _task_finished(e.task_finished, word(e, "task_status")),
    "task_held": lambda e: f"waits for {word(e.task_held, 'reason')}",
    "attempt_starting": lambda e: f"attempt {e.attempt} starting ({e.attempt_starting.adapter})",
    "attempt_started": lambda e: _started(e.attempt_started, e.attempt),
    "attempt_ended": lambda e: _ended(e.attempt_ended, e.attempt),
    "attempt_stopping": lambda e: _joined("stopping", e.attempt_stopping.cause),
    "task_progressed": lambda e: progress_text(e.task_progressed.progress),
    "message_posted": lambda e: e.message_posted.text,
    "tool_started": lambda e: _joined(e.tool_started.name, e.tool_started.title),
    "tool_ended": lambda e: _joined("tool ended", e.tool_ended.detail),
    "provider_error_reported": lambda e: _joined("error", e.provider_error_reported.message),
    "ask_opened": lambda e: f"asks {e.ask_opened.ask.id}: {question(e.ask_opened.ask)}",
    "ask_settled": _settled,
    "steer_updated": lambda e: _joined(
        f"{e.steer_updated.steer_id} {word(e.steer_updated, 'status')}", e.steer_updated.text
    ),
    "artifact_recorded": lambda e: _recorded(e.artifact_recorded.artifact),
    "limit_reached": lambda e: _limit(e.limit_reached),
    "warning_raised": lambda e: _joined("warning", e.warning_raised.message),
}
