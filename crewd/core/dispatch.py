"""Starting workers on the slots that were granted, and handing them what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewd.core.effects import KeepInOrder, KeepText, PassWorker, StartWorker, WriteWorker
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
from crewd.core.messages import (
    prompt_message,
    prompt_text,
    scaffold_text,
    steer_message,
    task_message,
)
from crewd.core.model import Actor, Attempt, Outbox, Result, Task
from crewd.core.prompt import Prompt, task_prompt
from crewd.core.redaction.redactor import redact
from crewd.core.spec import AGENTS, Adapter
from crewd.core.state import Promise, RunState
from crewd.core.stimuli import Capacity, OutboxAccepted, OutboxRoom
from crewd.core.turn import Turn
from crewd.core.units import later
from crewd.core.words import (
    ArtifactKind,
    AttemptStatus,
    Delivery,
    OutboxKind,
    Outcome,
    TaskStatus,
)

WANTS_STDIN: Final = AGENTS | {Adapter.JSONL}
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "md": "text/markdown; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
}
"""By the ending of a text's name."""


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
            model=spec.model,
            deadline=deadline,
        )
    )
    if spec.adapter is Adapter.SCAFFOLD:
        _pretend(turn, task)
        return
    if spec.adapter in AGENTS:
        _prepare(turn, task, previous)
        return
    turn.do(start_effect(state, task, number))
    if spec.adapter in WANTS_STDIN:
        body = task_message(state.run, task, number, _needed(turn, task), previous, deadline)
        say(turn, state.attempts[task.id], OutboxKind.TASK, body)


def _prepare(turn: Turn, task: Task, previous: Attempt | None) -> None:
    """Queue an agent's prompt, and have it kept with all it points to before the agent starts."""
    prompt = _prompt(turn, task, previous)
    body = prompt_message(prompt.text)
    _queue(turn, turn.state.attempts[task.id], OutboxKind.TASK, body)
    turn.do(_preparation(task, prompt.text, prompt))


def begin(turn: Turn, attempt: Attempt) -> None:
    """Have the host start what it never heard of: once an agent's prompt is kept, not before."""
    task = turn.state.tasks[attempt.task_id]
    if attempt.adapter in AGENTS and not attempt.prompt_artifact_id:
        rows = turn.state.outbox[task.id].values()
        text = next(prompt_text(row.body) for row in rows if row.kind is OutboxKind.TASK)
        turn.do(_preparation(task, text, _prompt(turn, task, None)))
        return
    promise = turn.state.promised.get(task.id)
    if promise is None:
        turn.do(start_effect(turn.state, task, attempt.number))
    elif promise.renewed and not promise.passed:
        promise.passed = True
        turn.do(_pass_effect(attempt, promise))
    else:
        return
    resend(turn, attempt.task_id, attempt.number, after=0)


def is_preparing(state: RunState, attempt: Attempt) -> bool:
    """Say whether the host was not told of it yet: its prompt or its process is not there."""
    if attempt.adapter not in AGENTS or attempt.pid:
        return False
    promise = state.promised.get(attempt.task_id)
    return not attempt.prompt_artifact_id or (promise is not None and not promise.passed)


def _pass_effect(attempt: Attempt, promise: Promise) -> PassWorker:
    return PassWorker(
        giver_task_id=promise.task_id,
        giver_attempt=promise.attempt,
        task_id=attempt.task_id,
        attempt=attempt.number,
        epoch=attempt.epoch,
    )


def _prompt(turn: Turn, task: Task, previous: Attempt | None) -> Prompt:
    state = turn.state
    return task_prompt(
        state.run,
        task,
        task.attempt,
        dependencies=_needed(turn, task),
        artifacts=state.artifacts,
        previous=previous,
    )


def _preparation(task: Task, text: str, prompt: Prompt) -> KeepInOrder:
    """Return what is to be kept; the prompt last, so that where it is all the rest is."""
    texts = [(spill.name, ArtifactKind.FILE, spill.text, "") for spill in prompt.spills]
    texts.append(("prompt.md", ArtifactKind.PROMPT, text, prompt.description))
    return KeepInOrder(
        tuple(
            KeepText(
                task_id=task.id,
                attempt=task.attempt,
                name=name,
                kind=kind,
                media_type=MEDIA_TYPES[name.rpartition(".")[2]],
                text=kept,
                description=description,
            )
            for name, kind, kept, description in texts
        )
    )


def _needed(turn: Turn, task: Task) -> list[Task]:
    return [turn.state.tasks[d] for d in task.spec.depends_on]


def start_effect(state: RunState, task: Task, number: int) -> StartWorker:
    """Return all that a start of the task is made of."""
    spec, run = task.spec, state.run
    return StartWorker(
        task_id=task.id,
        attempt=number,
        epoch=state.epoch,
        adapter=spec.adapter,
        agent=run.spec.agents.get(spec.agent),
        model=spec.model,
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
    turn.do(WriteWorker(_queue(turn, attempt, kind, body, ref)))


def send_note(
    turn: Turn, attempt: Attempt, steer_id: str, text: str, *, actor: Actor | None = None
) -> None:
    """Hand a note to a worker that listens, and tell of it."""
    turn.tell(
        SteerUpdated(
            task_id=attempt.task_id,
            attempt=attempt.number,
            steer_id=steer_id,
            status="queued",
            text=redact(text),
        ),
        actor=actor,
    )
    say(turn, attempt, OutboxKind.STEER, steer_message(steer_id, text), steer_id)


def _queue(turn: Turn, attempt: Attempt, kind: OutboxKind, body: str, ref: str = "") -> Outbox:
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
    return row


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
        tell_fate(turn, row, Delivery.DELIVERED)


def tell_fate(turn: Turn, row: Outbox, fate: Delivery) -> None:
    """Tell how far a note or an answer has got; of other messages nobody waits to hear."""
    if row.kind is OutboxKind.ANSWER:
        turn.tell(
            AskDelivered(ask_id=row.ref, task_id=row.task_id, attempt=row.attempt, delivery=fate)
        )
    elif row.kind is OutboxKind.STEER:
        turn.tell(
            SteerUpdated(
                task_id=row.task_id, attempt=row.attempt, steer_id=row.ref, status=fate.value
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
    result = Result(text=redact(scaffold_text(task)))
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
    return attempt.status is not AttemptStatus.STOPPING and attempt.handed_in is None


def is_stopping(attempt: Attempt) -> bool:
    return attempt.status is AttemptStatus.STOPPING
