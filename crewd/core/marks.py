"""What is stored but not published: changes to rows that no watcher needs to hear of.

Applied by `crewd.core.apply` like events, in the same transaction as the events they belong to.
"""

from __future__ import annotations

from crewd.core.model import Capabilities, HandedIn, Outbox, Result
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
    """The worker handed in."""

    task_id: str
    attempt: int
    result: Result
    handed_in: HandedIn


@record
class Dismissed:
    """The worker has nothing more to do and must have exited by `linger_until`."""

    task_id: str
    attempt: int
    linger_until: Instant


@record
class Nudged:
    """An agent was sent a further prompt."""

    task_id: str
    attempt: int


@record
class ResultRejected:
    """What was handed in did not satisfy the task's schema."""

    task_id: str
    attempt: int


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


@record
class StallMoved:
    """An agent that says nothing until then is stopped."""

    task_id: str
    attempt: int
    stall_at: Instant


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
    | Dismissed
    | Nudged
    | ResultRejected
    | OutputRead
    | StallMoved
    | OutboxQueued
    | OutboxTaken
    | ClockPaused
    | ClockResumed
)
