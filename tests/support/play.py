"""Plays stimuli against a run, in order, on a clock that the test moves."""

from __future__ import annotations

from typing import NamedTuple

from crewd.core.decide import decide
from crewd.core.effects import Continue, Effect
from crewd.core.events import Event, Recorded
from crewd.core.model import (
    Answer,
    Ask,
    Attempt,
    Outbox,
    Survivor,
    Task,
)
from crewd.core.reports import Report, Verdict
from crewd.core.spec import RunSpec
from crewd.core.state import RunState
from crewd.core.stimuli import (
    AnswerAsk,
    Cancel,
    CancelTasks,
    Capacity,
    Due,
    GoOn,
    OutboxAccepted,
    Resolution,
    Resolve,
    Resume,
    Retry,
    Stimulus,
    WorkerReported,
    WorkerStarted,
)
from crewd.core.units import Instant, seconds
from crewd.core.words import RunStatus, TaskStatus
from tests.support.builders import (
    DONE,
    KILLED,
    OPERATOR,
    START,
    a_create,
    an_empty_state,
    an_exit,
    host_ready,
)


class Told(NamedTuple):
    """What one stimulus led to."""

    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()


class Play:
    """A run and its clock. Each verb is one stimulus and returns what followed from it."""

    def __init__(self, state: RunState, now: Instant = START) -> None:
        self.state = state
        self.now = now
        self.log: list[Recorded] = []

    @classmethod
    def of(cls, spec: RunSpec) -> Play:
        """A run that was just created, with a host that is there."""
        play = cls(an_empty_state())
        play.tell(a_create(spec))
        play.tell(host_ready())
        return play

    @classmethod
    def running(cls, spec: RunSpec) -> Play:
        """A run whose first workers have started."""
        play = cls.of(spec)
        play.dispatch()
        for task_id in sorted(play.state.live):
            play.started(task_id)
        return play

    def tell(self, stimulus: Stimulus) -> Told:
        decision = decide(self.state, stimulus, self.now)
        self.log += decision.events
        return Told(tuple(r.event for r in decision.events), decision.effects)

    def wait(self, span: float) -> Told:
        """Let so many seconds pass, and say that something may be due."""
        self.now = Instant(self.now + seconds(span))
        return self.tell(Due())

    def go_on(self, told: Told) -> list[Told]:
        """Take slice after slice until the run wants no more."""
        slices: list[Told] = []
        while Continue() in told.effects:
            told = self.tell(GoOn())
            slices.append(told)
        return slices

    # The host and its workers

    def dispatch(self, slots: int = 1000) -> Told:
        return self.tell(Capacity(slots))

    def started(self, task_id: str, pid: int = 100) -> Told:
        number = self.task(task_id).attempt
        return self.tell(WorkerStarted(task_id=task_id, attempt=number, pid=pid))

    def start(self, task_id: str) -> None:
        """Start the task's worker, and whatever else is ready."""
        self.dispatch()
        self.started(task_id)

    def exit(self, task_id: str, verdict: Verdict = DONE) -> Told:
        return self.tell(an_exit(task_id, self.task(task_id).attempt, verdict))

    def stopped(self, task_id: str, *survivors: Survivor) -> Told:
        number = self.task(task_id).attempt
        return self.tell(an_exit(task_id, number, KILLED, stopped=True, survivors=survivors))

    def reported(self, task_id: str, *reports: Report) -> Told:
        """Hear a worker say something new."""
        row = self.attempt(task_id)
        return self.tell(
            WorkerReported(
                task_id=task_id,
                attempt=row.number,
                stdout_offset=row.stdout_offset + 10,
                stderr_offset=row.stderr_offset,
                stdout_bytes=row.stdout_bytes + 10,
                stderr_bytes=row.stderr_bytes,
                adapter_state="{}",
                reports=reports,
            )
        )

    def accepted(self, task_id: str, seq: int = 0) -> Told:
        """The host has the messages up to this one; 0 means all."""
        row = self.attempt(task_id)
        return self.tell(
            OutboxAccepted(task_id=task_id, attempt=row.number, seq=seq or row.stdin_seq)
        )

    # People

    def answer(self, ask_id: str, text: str = "", *options: str, decline: bool = False) -> Told:
        given = Answer(option_ids=options, text=text)
        return self.tell(AnswerAsk(ask_id=ask_id, answer=given, actor=OPERATOR, decline=decline))

    def cancel(self, reason: str = "enough", *, force: bool = False) -> Told:
        return self.tell(Cancel(reason=reason, actor=OPERATOR, force=force))

    def cancel_tasks(self, *task_ids: str, reason: str = "not needed") -> Told:
        return self.tell(CancelTasks(task_ids=task_ids, reason=reason, actor=OPERATOR))

    def resume(self) -> Told:
        return self.tell(Resume(actor=OPERATOR))

    def retry(self, *task_ids: str) -> Told:
        return self.tell(Retry(actor=OPERATOR, task_ids=task_ids))

    def resolve(self, task_id: str, resolution: Resolution, note: str = "seen") -> Told:
        return self.tell(Resolve(task_id=task_id, resolution=resolution, note=note, actor=OPERATOR))

    # What is there now

    def task(self, task_id: str) -> Task:
        return self.state.tasks[task_id]

    def attempt(self, task_id: str) -> Attempt:
        return self.state.attempts[task_id]

    def ask(self, ask_id: str) -> Ask:
        return self.state.asks[ask_id]

    def outbox(self, task_id: str) -> list[Outbox]:
        rows = self.state.outbox.get(task_id, {})
        return [rows[seq] for seq in sorted(rows)]

    def run_status(self) -> RunStatus:
        return self.state.run.status

    def statuses(self) -> dict[str, TaskStatus]:
        return {task.id: task.status for task in self.state.tasks.values()}
