"""What is stored but not published: changes to rows that no watcher needs to hear of.

Applied by `crewd.core.apply` like events, in the same transaction as the events they belong to.
"""

from __future__ import annotations

from crewd.core.model import Capabilities, Outbox, Result
from crewd.core.units import Instant, Span
from crewd.core.values import record, value


@record
class RunStopping:
    """The run starts nothing new and stops what it has, for a cause of its own."""

    cause: str
    message: str
    task_id: str = ""


@value
class RequeueEnded:
    """Everything a resume or retry puts back is back; dispatch may begin."""


@record
class AttemptIntroduced:
    """The worker said who it is and what it can do."""

    task_id: str
    attempt: int
    name: str = ""
    version: str = ""
    model: str = ""
    session_id: str = ""
    capabilities: Capabilities


@record
class ResultRecorded:
    """The worker handed in; it has until `linger_until` to exit."""

    task_id: str
    attempt: int
    result: Result
    linger_until: Instant


@record
class OutputRead:
    """Output up to these offsets is in the transcript and folded."""

    task_id: str
    attempt: int
    stdout_offset: int
    stderr_offset: int
    stdout_bytes: int
    stderr_bytes: int
    adapter_state: str


@value
class OutboxQueued:
    """Something is to be written to the worker."""

    row: Outbox


@record
class OutboxTaken:
    """The host has all messages up to this one."""

    task_id: str
    attempt: int
    seq: int


@record
class ClockPaused:
    """The attempt waits for a person, so its timeout stands still."""

    task_id: str
    attempt: int
    time_left: Span | None


@record
class ClockResumed:
    """The attempt goes on, with this deadline."""

    task_id: str
    attempt: int
    deadline: Instant | None


Mark = (
    RunStopping
    | AttemptIntroduced
    | RequeueEnded
    | ResultRecorded
    | OutputRead
    | OutboxQueued
    | OutboxTaken
    | ClockPaused
    | ClockResumed
)
