"""Starting workers on the slots that were granted, and handing them what they are told."""

from __future__ import annotations

from crewd.core.effects import StartWorker, WriteWorker
from crewd.core.events import (
    AskDelivered,
    AttemptEnded,
    AttemptStarted,
    AttemptStarting,
    RunStarted,
    SteerUpdated,
    TaskFinished,
)
from crewd.core.marks import OutboxQueued, OutboxTaken
from crewd.core.messages import scaffold_text, task_message
from crewd.core.model import (
    Attempt,
    AttemptStatus,
    Delivery,
    Outbox,
    OutboxKind,
    Outcome,
    Result,
    Task,
    TaskStatus,
)
from crewd.core.spec import Adapter
from crewd.core.stimuli import Capacity, OutboxAccepted, OutboxRoom
from crewd.core.turn import Turn
from crewd.core.units import later

WANTS_STDIN = frozenset({Adapter.JSONL})


def capacity(turn: Turn, stimulus: Capacity) -> None:
    """Start the first ready tasks, one on each slot granted."""
    state = turn.state
    for _ in range(min(stimulus.slots, state.wanted_slots())):
        task = state.pop_ready()
        if task is None:
            return
        start(turn, task)


def start(turn: Turn, task: Task) -> None:
    """Record the intent and have the host told of it once it is committed."""
    state = turn.state
    if state.run.start_time is None:
        turn.tell(RunStarted())
    spec = task.spec
    number = task.attempt + 1
    previous = state.attempts.get(task.id)
    deadline = later(turn.now, spec.timeout) if spec.timeout is not None else None
    turn.tell(
        AttemptStarting(
            task_id=task.id,
            attempt=number,
            adapter=spec.adapter,
            epoch=state.epoch,
            argv=spec.command,
            deadline=deadline,
        )
    )
    if spec.adapter is Adapter.SCAFFOLD:
        _pretend(turn, task)
        return
    turn.do(start_effect(turn, task, number))
    if spec.adapter in WANTS_STDIN:
        needed = [state.tasks[d] for d in spec.depends_on]
        body = task_message(state.run, task, number, needed, previous, deadline)
        say(turn, state.attempts[task.id], OutboxKind.TASK, body)


def start_effect(turn: Turn, task: Task, number: int) -> StartWorker:
    spec, run = task.spec, turn.state.run
    return StartWorker(
        task_id=task.id,
        attempt=number,
        epoch=turn.state.epoch,
        executable=spec.executable,
        argv=spec.command,
        cwd=spec.cwd,
        path=run.spec.path,
        env={**run.spec.env, **spec.env},
        env_from=spec.env_from,
        stdin=spec.adapter in WANTS_STDIN,
        keep_children=spec.keep_children,
    )


def say(turn: Turn, attempt: Attempt, kind: OutboxKind, body: str, ref: str = "") -> None:
    """Queue a message to the worker and have the host given it after the commit."""
    row = Outbox(
        run_id=attempt.run_id,
        task_id=attempt.task_id,
        attempt=attempt.number,
        seq=attempt.stdin_seq + 1,
        kind=kind,
        body=body,
        ref=ref,
    )
    turn.note(OutboxQueued(row))
    turn.do(WriteWorker(row))


def accepted(turn: Turn, stimulus: OutboxAccepted) -> None:
    """Drop what the host has: it gives each message to the worker once, so it is delivered."""
    state = turn.state
    attempt = state.live_attempt(stimulus.task_id, stimulus.attempt)
    if attempt is None:
        return
    waiting = sorted(state.outbox.get(attempt.task_id, {}).items())
    rows = [row for seq, row in waiting if seq <= stimulus.seq]
    if not rows:
        return
    turn.note(OutboxTaken(task_id=attempt.task_id, attempt=attempt.number, seq=stimulus.seq))
    for row in rows:
        if row.kind is OutboxKind.ANSWER:
            turn.tell(
                AskDelivered(
                    ask_id=row.ref,
                    task_id=row.task_id,
                    attempt=row.attempt,
                    delivery=Delivery.DELIVERED,
                )
            )
        elif row.kind is OutboxKind.STEER:
            turn.tell(
                SteerUpdated(
                    task_id=row.task_id, attempt=row.attempt, steer_id=row.ref, status="delivered"
                )
            )


def room(turn: Turn, stimulus: OutboxRoom) -> None:
    """Offer again what the host would not take while the worker was not reading."""
    resend(turn, stimulus.task_id, stimulus.attempt, after=0)


def resend(turn: Turn, task_id: str, number: int, *, after: int) -> None:
    attempt = turn.state.live_attempt(task_id, number)
    if attempt is None:
        return
    for seq, row in sorted(turn.state.outbox.get(task_id, {}).items()):
        if seq > after:
            turn.do(WriteWorker(row))


def _pretend(turn: Turn, task: Task) -> None:
    """Complete a scaffold task: it has no process, and its result says so."""
    result = Result(text=scaffold_text(task))
    turn.tell(AttemptStarted(task_id=task.id, attempt=task.attempt))
    turn.tell(
        AttemptEnded(
            task_id=task.id,
            attempt=task.attempt,
            outcome=Outcome.COMPLETED,
            proof="inline",
            result=result,
        )
    )
    turn.tell(TaskFinished(task_id=task.id, status=TaskStatus.COMPLETED, result=result))


def listens(attempt: Attempt) -> bool:
    """Say whether the worker may still be told something: its stdin closes when it hands in."""
    return attempt.status is not AttemptStatus.STOPPING and attempt.result is None


def is_stopping(attempt: Attempt) -> bool:
    return attempt.status is AttemptStatus.STOPPING
