"""What follows from what a worker said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from crewd.core import pass_on
from crewd.core import reports as r
from crewd.core.asks import asked, withdrawn
from crewd.core.dispatch import say
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import (
    ArtifactRecorded,
    MessagePosted,
    ProviderErrorReported,
    SteerUpdated,
    TaskProgressed,
    ToolEnded,
    ToolStarted,
    UsageReported,
    WarningRaised,
)
from crewd.core.hand_in import check_result, result_given, turn_ended
from crewd.core.limits import check_limits
from crewd.core.marks import AttemptIntroduced, OutputRead
from crewd.core.model import Attempt, Progress
from crewd.core.pace import count_turns, sign_of_life
from crewd.core.stimuli import WorkerCalled, WorkerReported
from crewd.core.turn import Turn
from crewd.core.units import later

TEXT_BYTES: Final = 48 * 1024
"""What an event carries of a text; the transcript has it whole."""


def reported(turn: Turn, stimulus: WorkerReported) -> None:
    """Record how far the output was read, and every report folded out of it, in one commit."""
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None or _is_repeat(attempt, stimulus):
        return
    if stimulus.stdout_offset > attempt.stdout_offset:
        sign_of_life(turn, attempt)
    turn.note(
        OutputRead(
            task_id=attempt.task_id,
            attempt=attempt.number,
            stdout_offset=stimulus.stdout_offset,
            stderr_offset=stimulus.stderr_offset,
            stdout_bytes=stimulus.stdout_bytes,
            stderr_bytes=stimulus.stderr_bytes,
            adapter_state=stimulus.adapter_state,
        )
    )
    if turn.state.run.stopping == "incident":
        return  # What it says may be what this run broke on: it is kept, and decides nothing.
    for report in stimulus.reports:
        _hear(turn, attempt, report)
    for kind, body in stimulus.writes:
        say(turn, attempt, kind, body)


def called(turn: Turn, stimulus: WorkerCalled) -> None:
    """Take what the worker said by a call of its own. TOKEN_INVALID once its attempt has ended."""
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None:
        message = f"attempt {stimulus.attempt} of task {stimulus.task_id} has ended"
        raise CrewdError(Reason.TOKEN_INVALID, message)
    if isinstance(stimulus.report, r.ResultGiven):
        check_result(turn, attempt, stimulus.report)
    _hear(turn, attempt, stimulus.report)


def _is_repeat(attempt: Attempt, stimulus: WorkerReported) -> bool:
    return (
        stimulus.stdout_offset <= attempt.stdout_offset
        and stimulus.stderr_offset <= attempt.stderr_offset
    )


def _hear(turn: Turn, attempt: Attempt, report: r.Report) -> None:
    _HEARERS[type(report)](turn, attempt, report)


def _hello(turn: Turn, attempt: Attempt, report: r.Hello) -> None:
    turn.note(
        AttemptIntroduced(
            task_id=attempt.task_id,
            attempt=attempt.number,
            name=report.name,
            version=report.version,
            model=report.model,
            session_id=report.session_id,
            capabilities=report.capabilities,
        )
    )


def _tool_began(turn: Turn, attempt: Attempt, report: r.ToolBegan) -> None:
    turn.tell(
        ToolStarted(
            task_id=attempt.task_id,
            attempt=attempt.number,
            tool_id=report.tool_id,
            name=report.name,
            title=report.title,
        )
    )


def _tool_done(turn: Turn, attempt: Attempt, report: r.ToolDone) -> None:
    turn.tell(
        ToolEnded(
            task_id=attempt.task_id,
            attempt=attempt.number,
            tool_id=report.tool_id,
            is_error=report.is_error,
            detail=report.detail,
        )
    )


def _used(turn: Turn, attempt: Attempt, report: r.Used) -> None:
    turn.tell(
        UsageReported(
            task_id=attempt.task_id,
            attempt=attempt.number,
            delta=report.usage,
            model=report.model,
        )
    )
    check_limits(turn)
    count_turns(turn, attempt)


def _steer_seen(turn: Turn, attempt: Attempt, report: r.SteerSeen) -> None:
    turn.tell(
        SteerUpdated(
            task_id=attempt.task_id,
            attempt=attempt.number,
            steer_id=report.steer_id,
            status="seen",
        )
    )


def _warned(turn: Turn, attempt: Attempt, report: r.Warned) -> None:
    turn.tell(
        WarningRaised(
            code=report.code,
            message=report.message,
            task_id=attempt.task_id,
            attempt=attempt.number,
        )
    )


def _artifact_kept(turn: Turn, _attempt: Attempt, report: r.ArtifactKept) -> None:
    turn.tell(ArtifactRecorded(replace(report.artifact, create_time=turn.now)))


def _message(turn: Turn, attempt: Attempt, report: r.Message) -> None:
    text = _cut(report.text)
    turn.tell(
        MessagePosted(
            task_id=attempt.task_id,
            attempt=attempt.number,
            role=report.role,
            text=text,
            truncated=text != report.text,
        )
    )


def _progress(turn: Turn, attempt: Attempt, report: r.ProgressMade) -> None:
    progress = Progress(
        percent=report.percent,
        step=_cut(report.step),
        message=_cut(report.text),
        update_time=turn.now,
    )
    turn.tell(TaskProgressed(task_id=attempt.task_id, attempt=attempt.number, progress=progress))


def _trouble(turn: Turn, attempt: Attempt, report: r.ProviderTrouble) -> None:
    retry_time = later(turn.now, report.retry_after) if report.retry_after is not None else None
    turn.tell(
        ProviderErrorReported(
            task_id=attempt.task_id,
            attempt=attempt.number,
            cause=report.cause,
            message=_cut(report.message),
            retry_time=retry_time,
        )
    )


def _cut(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= TEXT_BYTES else raw[:TEXT_BYTES].decode("utf-8", "ignore")


_HEARERS: Final[Mapping[type, Callable[[Turn, Attempt, Any], None]]] = {
    r.Hello: _hello,
    r.Message: _message,
    r.ProgressMade: _progress,
    r.ToolBegan: _tool_began,
    r.ToolDone: _tool_done,
    r.Used: _used,
    r.Asked: asked,
    r.AskWithdrawn: withdrawn,
    r.SteerSeen: _steer_seen,
    r.ProviderTrouble: _trouble,
    r.Warned: _warned,
    r.ArtifactKept: _artifact_kept,
    r.SessionOpened: pass_on.opened,
    r.SessionRenewed: pass_on.renewed,
    r.TurnEnded: turn_ended,
    r.ResultGiven: result_given,
}
