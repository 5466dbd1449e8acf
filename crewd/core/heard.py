"""What follows from what a worker said."""

from __future__ import annotations

from typing import Final, assert_never

from crewd.core import reports as r
from crewd.core.asks import asked, withdrawn
from crewd.core.dispatch import say
from crewd.core.effects import CloseStdin
from crewd.core.events import (
    MessagePosted,
    ProviderErrorReported,
    SteerUpdated,
    TaskProgressed,
    ToolEnded,
    ToolStarted,
    UsageReported,
    WarningRaised,
)
from crewd.core.limits import check_limits
from crewd.core.marks import AttemptIntroduced, OutputRead, ResultRecorded
from crewd.core.model import Attempt, Progress
from crewd.core.stimuli import WorkerReported
from crewd.core.turn import Turn
from crewd.core.units import later, seconds

LINGER: Final = seconds(5)
"""How long a worker has to exit after it handed in."""
TEXT_BYTES: Final = 48 * 1024
"""What an event carries of a text; the transcript has it whole."""


def reported(turn: Turn, stimulus: WorkerReported) -> None:
    """Record how far the output was read, and every report folded out of it, in one commit."""
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None or _is_repeat(attempt, stimulus):
        return
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
    for report in stimulus.reports:
        _hear(turn, attempt, report)
    for kind, body in stimulus.writes:
        say(turn, attempt, kind, body)


def _is_repeat(attempt: Attempt, stimulus: WorkerReported) -> bool:
    return (
        stimulus.stdout_offset <= attempt.stdout_offset
        and stimulus.stderr_offset <= attempt.stderr_offset
    )


def _hear(turn: Turn, attempt: Attempt, report: r.Report) -> None:  # noqa: C901, PLR0912 - a table
    task_id, number = attempt.task_id, attempt.number
    match report:
        case r.Hello():
            turn.note(
                AttemptIntroduced(
                    task_id=task_id,
                    attempt=number,
                    name=report.name,
                    version=report.version,
                    model=report.model,
                    session_id=report.session_id,
                    capabilities=report.capabilities,
                )
            )
        case r.Message():
            _message(turn, attempt, report)
        case r.ProgressMade():
            _progress(turn, attempt, report)
        case r.ToolBegan(tool_id=tool_id, name=name, title=title):
            turn.tell(
                ToolStarted(
                    task_id=task_id, attempt=number, tool_id=tool_id, name=name, title=title
                )
            )
        case r.ToolDone(tool_id=tool_id, is_error=failed, detail=detail):
            turn.tell(
                ToolEnded(
                    task_id=task_id, attempt=number, tool_id=tool_id, is_error=failed, detail=detail
                )
            )
        case r.Used():
            turn.tell(
                UsageReported(
                    task_id=task_id, attempt=number, delta=report.usage, model=report.model
                )
            )
            check_limits(turn)
        case r.Asked():
            asked(turn, attempt, report)
        case r.AskWithdrawn():
            withdrawn(turn, attempt, report)
        case r.SteerSeen(steer_id=steer_id):
            turn.tell(
                SteerUpdated(task_id=task_id, attempt=number, steer_id=steer_id, status="seen")
            )
        case r.ProviderTrouble():
            _trouble(turn, attempt, report)
        case r.Warned(code=code, message=message):
            turn.tell(WarningRaised(code=code, message=message, task_id=task_id, attempt=number))
        case r.ResultGiven():
            _handed_in(turn, attempt, report)
        case _:
            assert_never(report)


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


def _handed_in(turn: Turn, attempt: Attempt, report: r.ResultGiven) -> None:
    if attempt.result is not None:
        return
    turn.note(
        ResultRecorded(
            task_id=attempt.task_id,
            attempt=attempt.number,
            result=report.result,
            linger_until=later(turn.now, LINGER),
        )
    )
    turn.do(CloseStdin(task_id=attempt.task_id, attempt=attempt.number))


def _cut(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= TEXT_BYTES else raw[:TEXT_BYTES].decode("utf-8", "ignore")
