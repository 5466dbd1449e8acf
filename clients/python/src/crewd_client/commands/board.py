"""Where a run and its tasks stand, folded from what is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from crewd_client.commands.lines import progress_text, question, summary
from crewd_client.commands.terminal import seconds_between
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_BLOCKED,
    RUN_STATUS_CANCELLED,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
    RUN_STATUS_UNSPECIFIED,
    Run,
    RunStatus,
)
from crewd_client.v1.task_pb2 import (
    TASK_STATUS_CANCELLED,
    TASK_STATUS_CANCELLING,
    TASK_STATUS_COMPLETED,
    TASK_STATUS_FAILED,
    TASK_STATUS_NEEDS_ATTENTION,
    TASK_STATUS_QUEUED,
    TASK_STATUS_RUNNING,
    TASK_STATUS_SKIPPED,
    TASK_STATUS_UNSPECIFIED,
    TASK_STATUS_WAITING,
    Task,
    TaskStatus,
)

OVER = {RUN_STATUS_COMPLETED, RUN_STATUS_FAILED, RUN_STATUS_CANCELLED}
AT_REST = OVER | {RUN_STATUS_BLOCKED}
SETTLED = {
    TASK_STATUS_COMPLETED,
    TASK_STATUS_FAILED,
    TASK_STATUS_CANCELLED,
    TASK_STATUS_SKIPPED,
    TASK_STATUS_NEEDS_ATTENTION,
}


@dataclass(slots=True)
class Row:
    """One task as the table shows it."""

    id: str
    title: str
    status: TaskStatus.ValueType = TASK_STATUS_QUEUED
    attempt: int = 0
    message: str = ""
    start: Timestamp | None = None
    end: Timestamp | None = None

    @property
    def elapsed(self) -> float | None:
        return None if self.start is None else seconds_between(self.start, self.end)


@dataclass(slots=True)
class Board:
    """A run and its tasks. `status` is unspecified until something is known."""

    status: RunStatus.ValueType = RUN_STATUS_UNSPECIFIED
    title: str = ""
    rows: dict[str, Row] = field(default_factory=dict[str, Row])

    def load(self, run: Run, tasks: Iterable[Task]) -> None:
        """Begin with a state that was read."""
        self.status, self.title = run.status, run.title
        self.rows = {task.id: _row(task) for task in tasks}

    def apply(self, event: Event) -> None:
        """Take an event in."""
        if event.run_status != RUN_STATUS_UNSPECIFIED:
            self.status = event.run_status
        if event.HasField("run_created"):
            self.title = event.run_created.run.title
        for task in event.tasks_added.tasks:
            self.rows[task.id] = _row(task)
        row = self.rows.get(event.task_id)
        if row is not None:
            _update(row, event)

    def counts(self) -> Counter[TaskStatus.ValueType]:
        return Counter(row.status for row in self.rows.values())

    def urgent_rows(self, limit: int) -> list[Row]:
        """Give the rows worth showing if not all can be: those at work and those that failed."""
        if len(self.rows) <= limit:
            return list(self.rows.values())
        ranked = sorted(self.rows.values(), key=lambda row: _URGENCY.get(row.status, 0))
        kept = {row.id for row in ranked[:limit]}
        return [row for row in self.rows.values() if row.id in kept]


_URGENCY = {
    TASK_STATUS_WAITING: 0,
    TASK_STATUS_NEEDS_ATTENTION: 1,
    TASK_STATUS_RUNNING: 2,
    TASK_STATUS_CANCELLING: 2,
    TASK_STATUS_FAILED: 3,
    TASK_STATUS_QUEUED: 4,
    TASK_STATUS_CANCELLED: 5,
    TASK_STATUS_SKIPPED: 5,
    TASK_STATUS_COMPLETED: 6,
}


def _row(task: Task) -> Row:
    return Row(
        id=task.id,
        title=task.title,
        status=task.status or TASK_STATUS_QUEUED,
        attempt=task.attempt,
        message=task.status_message or progress_text(task.progress),
        start=task.start_time if task.HasField("start_time") else None,
        end=task.end_time if task.HasField("end_time") else None,
    )


def _update(row: Row, event: Event) -> None:
    row.attempt = max(row.attempt, event.attempt)
    if event.task_status != TASK_STATUS_UNSPECIFIED:
        row.status = event.task_status
        row.end = event.time if event.task_status in SETTLED else None
    if event.kind == "attempt_started" and row.start is None:
        row.start = event.time
    if event.kind == "ask_opened":
        row.message = question(event.ask_opened.ask)
    elif event.kind in _TELLING:
        row.message = summary(event)


_TELLING = {
    "attempt_ended",
    "message_posted",
    "provider_error_reported",
    "task_finished",
    "task_held",
    "task_progressed",
    "task_retry_scheduled",
    "tool_started",
}
