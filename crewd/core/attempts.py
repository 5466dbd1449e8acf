"""What becomes of a task when its worker starts, cannot start, ends or is lost.

A failed attempt is recorded as an attempt; the task fails only when no attempt is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from crewd.core.asks import close_asks, drop_awaited
from crewd.core.derive import derived_id
from crewd.core.dispatch import accepted, tell_fate
from crewd.core.effects import ForgetWorker
from crewd.core.events import (
    CANCELLING_CAUSES,
    ArtifactRecorded,
    AttemptEnded,
    AttemptStarted,
    TaskFinished,
    TaskHeld,
    TaskRetryScheduled,
)
from crewd.core.marks import RunStopping
from crewd.core.model import Artifact, Attempt, Failure, Survivor, Task
from crewd.core.pass_on import broken, heir_of
from crewd.core.reports import Verdict
from crewd.core.retry import jitter_fraction, may_retry, retry_delay
from crewd.core.spec import AGENTS, Adapter, FailureMode, RetryPolicy
from crewd.core.stimuli import OutboxAccepted, Refusal, WorkerExited, WorkerRefused, WorkerStarted
from crewd.core.turn import Turn
from crewd.core.units import SECOND, later, seconds
from crewd.core.words import (
    ArtifactKind,
    AskStatus,
    AttemptStatus,
    Cause,
    Delivery,
    Outcome,
    TaskStatus,
)

REFUSAL_CAUSES: Final[Mapping[Refusal, Cause]] = {
    Refusal.CWD_MISSING: Cause.WORKSPACE_MISSING,
    Refusal.EXECUTABLE_MISSING: Cause.EXECUTABLE_MISSING,
    Refusal.NOT_EXECUTABLE: Cause.EXECUTABLE_MISSING,
    Refusal.ENVIRONMENT_MISSING: Cause.SPAWN,
    Refusal.TRANSIENT: Cause.SPAWN,
    Refusal.NOT_PASSED: Cause.SPAWN,
    Refusal.SPAWN: Cause.SPAWN,
}
QUOTA_WAITS: Final = 5
QUOTA_BACKOFF: Final = RetryPolicy(backoff=seconds(15), max_backoff=seconds(240))
"""A provider's rate limit is waited for, up to eight minutes, and costs no attempt meanwhile; not
for a task that is tried only once."""
FIRST_WORD: Final = seconds(60)
"""From the start of an agent's process to the first line of its protocol."""
PASSING: Final = frozenset({Refusal.TRANSIENT, Refusal.SPAWN})
SHORT_OF_RESOURCES: Final = 4
"""A machine short of processes or memory is given as long as after this many failures."""
STOPPED: Final[Mapping[str, tuple[Outcome, Cause, str]]] = {
    "cancelled": (Outcome.CANCELLED, Cause.CANCELLED, "cancelled"),
    "fail_fast": (Outcome.CANCELLED, Cause.CANCELLED, "stopped because another task failed"),
    "limit": (Outcome.CANCELLED, Cause.CANCELLED, "stopped because the run reached a limit"),
    "incident": (Outcome.CANCELLED, Cause.CANCELLED, "stopped by an internal error"),
    "timeout": (Outcome.TIMED_OUT, Cause.TIMEOUT, "stopped after its timeout"),
    "stalled": (Outcome.TIMED_OUT, Cause.STALLED, "stopped since it had fallen silent"),
    "turns": (Outcome.FAILED, Cause.TIMEOUT, "stopped after more turns than its agent may take"),
    "ask_timeout": (Outcome.FAILED, Cause.TIMEOUT, "nobody answered its question in time"),
}


def started(turn: Turn, stimulus: WorkerStarted) -> None:
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is not None and not attempt.pid:
        speaks = attempt.adapter in AGENTS
        turn.tell(
            AttemptStarted(
                task_id=attempt.task_id,
                attempt=attempt.number,
                pid=stimulus.pid,
                host=turn.state.host,
                argv=stimulus.argv,
                speak_until=later(turn.now, FIRST_WORD) if speaks else None,
            )
        )


def refused(turn: Turn, stimulus: WorkerRefused) -> None:
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None:
        return
    if stimulus.kind is Refusal.NOT_PASSED and attempt.status is AttemptStatus.STARTING:
        broken(turn, attempt)
        return
    cause = REFUSAL_CAUSES[stimulus.kind]
    if attempt.stop_cause in CANCELLING_CAUSES or stimulus.kind is Refusal.NOT_PASSED:
        verdict = _stopped(attempt)
    else:
        verdict = Verdict(
            outcome=Outcome.FAILED,
            cause=cause,
            message=stimulus.message,
            retryable=stimulus.kind in PASSING,
        )
    end = _ended(attempt, verdict, proof="never_started")
    settle(turn, end, spends=stimulus.kind is not Refusal.TRANSIENT)


def exited(turn: Turn, stimulus: WorkerExited) -> None:
    attempt = turn.state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None:
        turn.do(ForgetWorker(task_id=stimulus.task_id, attempt=stimulus.attempt))
        return
    # A daemon that was away meanwhile has heard neither of the start nor of what the host took.
    if stimulus.pid:
        start = WorkerStarted(task_id=attempt.task_id, attempt=attempt.number, pid=stimulus.pid)
        started(turn, start)
    taken = OutboxAccepted(task_id=attempt.task_id, attempt=attempt.number, seq=stimulus.stdin_seq)
    accepted(turn, taken)
    verdict, spends = _own_word(turn, attempt, stimulus.verdict), True
    if attempt.stop_cause in STOPPED and (stimulus.stopped or stimulus.never_started):
        verdict = _stopped(attempt)
    elif stimulus.stopped and not attempt.stop_cause and attempt.handed_in is None:
        # Not even exit code 0 is evidence of a worker that somebody else had ended. Whoever
        # ended the host on purpose did not mean the task to fail.
        verdict, spends = _lost("it was stopped together with its host"), False
    heir = heir_of(turn, attempt)
    end = _ended(
        attempt, verdict, proof=_proof(stimulus), exited=stimulus, survivors=stimulus.survivors
    )
    settle(turn, end, spends=spends)
    if heir is not None and not stimulus.passed:
        broken(turn, heir)


def _proof(stimulus: WorkerExited) -> str:
    if stimulus.never_started:
        return "never_started"
    if stimulus.passed:
        return "passed_on"
    return "stopped" if stimulus.stopped else "exit"


def lose(turn: Turn, attempt: Attempt, *, proof: str = "host_lost") -> None:
    """Settle an attempt whose host is gone, with all that it left: nobody saw it end."""
    if attempt.stop_cause in STOPPED:
        verdict = _stopped(attempt)
    else:
        lost = _lost("the process that ran it was lost before it ended")
        verdict = _own_word(turn, attempt, lost)
    settle(turn, _ended(attempt, verdict, proof=proof))


def give_up(turn: Turn, attempt: Attempt) -> None:
    """Settle a forced stop that has waited long enough, without proof, naming the process."""
    unproven = Survivor(attempt.pid, " ".join(attempt.argv))
    settle(turn, _ended(attempt, _stopped(attempt), proof="", survivors=(unproven,)))


def settle(turn: Turn, end: AttemptEnded, *, spends: bool = True) -> None:
    """Record the end of an attempt and what it means for its task."""
    _drop_undelivered(turn, end)
    task = turn.state.tasks[end.task_id]
    cancelled = task.status is TaskStatus.CANCELLING
    _keep_transcript(turn, end)
    turn.tell(end)
    turn.do(ForgetWorker(task_id=end.task_id, attempt=end.attempt))
    if end.outcome is Outcome.COMPLETED:
        finish(turn, TaskFinished(task_id=task.id, status=TaskStatus.COMPLETED, result=end.result))
    elif cancelled or end.outcome is Outcome.CANCELLED or turn.state.run.stopping == "cancel":
        finish(turn, _cancelled(turn, task, end))
    elif end.outcome is Outcome.NEEDS_ATTENTION:
        finish(
            turn,
            TaskFinished(
                task_id=task.id,
                status=TaskStatus.NEEDS_ATTENTION,
                reason=end.cause or Cause.NO_RESULT,
                message=end.message,
                result=end.result,
            ),
        )
    else:
        _try_again_or_fail(turn, task, end, spends=spends and not _waits_for_quota(task, end))


def _try_again_or_fail(turn: Turn, task: Task, end: AttemptEnded, *, spends: bool) -> None:
    if _goes_again(turn, task, end, spends=spends):
        _retry(turn, task, end, spends=spends)
    else:
        _fail(turn, task, end)


def _keep_transcript(turn: Turn, end: AttemptEnded) -> None:
    """List what an agent said among what its run keeps; its bytes stay where they are."""
    attempt = turn.state.attempts[end.task_id]
    if attempt.adapter not in AGENTS or not end.stdout_bytes:
        return
    turn.tell(
        ArtifactRecorded(
            Artifact(
                id=derived_id("art", attempt.key, "transcript"),
                run_id=attempt.run_id,
                task_id=attempt.task_id,
                attempt=attempt.number,
                name="transcript.jsonl",
                kind=ArtifactKind.TRANSCRIPT,
                media_type="application/jsonl",
                size_bytes=end.stdout_bytes,
                redacted=True,
                create_time=turn.now,
            )
        )
    )


def finish(turn: Turn, event: TaskFinished) -> None:
    """Record where the task ended up; a question it left open has nobody to go to."""
    turn.tell(event)
    if event.status is not TaskStatus.NEEDS_ATTENTION:
        cancelled = event.status is TaskStatus.CANCELLED
        close_asks(turn, event.task_id, AskStatus.CANCELLED if cancelled else AskStatus.SUPERSEDED)


def _goes_again(turn: Turn, task: Task, end: AttemptEnded, *, spends: bool) -> bool:
    if turn.state.run.stopping:
        return False
    spent = task.spent_attempts + (1 if spends else 0)
    return may_retry(task.spec.retry, spent, retryable=end.retryable, cause=end.cause)


def _waits_for_quota(task: Task, end: AttemptEnded) -> bool:
    """Say whether this failure is only a provider's rate limit that will pass."""
    policy = task.spec.retry
    waited = end.attempt - 1 - task.spent_attempts
    return end.cause is Cause.THROTTLED and policy.max_attempts > 1 and waited < QUOTA_WAITS


def _retry(turn: Turn, task: Task, end: AttemptEnded, *, spends: bool) -> None:
    fraction = jitter_fraction(task.run_id, task.id, end.attempt)
    policy, failures = task.spec.retry, task.spent_attempts + 1
    if not spends and end.cause is Cause.THROTTLED:
        policy, failures = QUOTA_BACKOFF, end.attempt - task.spent_attempts
    elif not spends:
        failures = 1 if end.cause is Cause.LOST else SHORT_OF_RESOURCES
    delay = retry_delay(policy, failures, fraction)
    not_before = later(turn.now, delay)
    turn.tell(
        TaskRetryScheduled(
            task_id=task.id,
            next_attempt=end.attempt + 1,
            not_before=not_before,
            cause=end.cause,
            spends=spends,
        )
    )
    if delay > SECOND:
        turn.tell(TaskHeld(task_id=task.id, reason="backoff", until=not_before))


def _fail(turn: Turn, task: Task, end: AttemptEnded) -> None:
    if turn.state.run.stopping and end.retryable:
        finish(turn, _cancelled(turn, task, end))
    else:
        fail_task(turn, task, end.cause or Cause.EXIT, end.message, retryable=end.retryable)


def fail_task(
    turn: Turn, task: Task, cause: Cause, message: str, *, retryable: bool = False
) -> None:
    """Fail a task for good, and with it the run when it is to fail fast."""
    finish(
        turn,
        TaskFinished(
            task_id=task.id,
            status=TaskStatus.FAILED,
            reason=cause,
            message=message,
            error=Failure(reason=cause, message=message, task_id=task.id, retryable=retryable),
        ),
    )
    run = turn.state.run
    if run.spec.failure_mode is FailureMode.FAIL_FAST and not run.stopping:
        told = f"task {task.id} failed: {message}"
        turn.note(RunStopping(cause="fail_fast", message=told, task_id=task.id))


def _cancelled(turn: Turn, task: Task, end: AttemptEnded) -> TaskFinished:
    attempt = turn.state.attempts[task.id]
    return TaskFinished(
        task_id=task.id,
        status=TaskStatus.CANCELLED,
        reason=attempt.stop_cause or turn.state.run.stopping or "cancelled",
        message=end.message,
    )


def _drop_undelivered(turn: Turn, end: AttemptEnded) -> None:
    """Tell of notes and answers that the worker did not live to get."""
    for row in list(turn.state.outbox.get(end.task_id, {}).values()):
        tell_fate(turn, row, Delivery.UNDELIVERABLE)
    drop_awaited(turn, end.task_id)


def _without_data(task: Task, verdict: Verdict) -> Verdict:
    """Let nothing count as done that owes data and has handed in none."""
    if verdict.outcome is not Outcome.COMPLETED or not task.spec.output.schema_json:
        return verdict
    message = "ended without handing in the data that was asked for"
    return replace(verdict, outcome=Outcome.NEEDS_ATTENTION, cause=Cause.NO_RESULT, message=message)


def _own_word(turn: Turn, attempt: Attempt, verdict: Verdict) -> Verdict:
    """Let what the worker handed in stand for its end; a plain command must end well too."""
    given = attempt.handed_in
    if given is None:
        return _without_data(turn.state.tasks[attempt.task_id], verdict)
    if attempt.adapter == Adapter.COMMAND and verdict.outcome is not Outcome.COMPLETED:
        return verdict
    return Verdict(
        outcome=given.outcome,
        cause=given.cause,
        message=given.message,
        retryable=given.retryable,
        result=attempt.result,
    )


def _stopped(attempt: Attempt) -> Verdict:
    outcome, cause, message = STOPPED.get(attempt.stop_cause, STOPPED["cancelled"])
    timed_out = outcome is Outcome.TIMED_OUT
    return Verdict(outcome=outcome, cause=cause, message=message, retryable=timed_out)


def _lost(message: str) -> Verdict:
    return Verdict(outcome=Outcome.LOST, cause=Cause.LOST, message=message, retryable=True)


def _ended(
    attempt: Attempt,
    verdict: Verdict,
    *,
    proof: str,
    exited: WorkerExited | None = None,
    survivors: tuple[Survivor, ...] = (),
) -> AttemptEnded:
    return AttemptEnded(
        task_id=attempt.task_id,
        attempt=attempt.number,
        outcome=verdict.outcome,
        cause=verdict.cause,
        message=verdict.message,
        retryable=verdict.retryable,
        exit_code=exited.exit_code if exited else None,
        signal=exited.signal if exited else None,
        usage=attempt.usage,
        stdout_bytes=attempt.stdout_bytes,
        stderr_bytes=attempt.stderr_bytes,
        proof="" if survivors else proof,
        survivors=survivors,
        result=verdict.result if verdict.result is not None else attempt.result,
    )
