"""A host without processes: it takes effects, and says what its jobs did when it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from crewd.core import effects as fx
from crewd.core.dispatch import WANTS_STDIN
from crewd.core.model import Outbox, Result, Survivor
from crewd.core.reports import Report, Verdict
from crewd.core.stimuli import (
    HostReady,
    LiveJob,
    Refusal,
    Stimulus,
    WorkerExited,
    WorkerRefused,
    WorkerStarted,
)
from crewd.core.words import Cause, OutboxKind, Outcome
from tests.support.builders import HOST, an_exit

Key = tuple[str, int]
News = list[Stimulus]


@dataclass(slots=True)
class Job:
    """A worker, and every report that is in what it has said so far."""

    adapter: str
    pid: int = 0
    stdin_seq: int = 0
    stdin_closed: bool = False
    stopping: bool = False
    said: list[tuple[Report, ...]] = field(default_factory=list[tuple[Report, ...]])
    refs: set[str] = field(default_factory=set[str])
    handed_in: bool = False
    to_renew: bool = False
    """It was told to begin a new session."""
    over: bool = False
    """An agent whose turn has ended and that was not told to go on."""

    @property
    def listens(self) -> bool:
        return self.adapter in WANTS_STDIN

    def take(self, row: Outbox) -> None:
        """Write a message to its stdin, or drop one that it has."""
        assert row.seq <= self.stdin_seq + 1, "a gap in what the worker is told"
        if row.seq <= self.stdin_seq:
            return
        assert not self.stdin_closed, "told after its stdin was closed"
        self.stdin_seq = row.seq
        self.to_renew |= row.kind is OutboxKind.RENEW
        self.over &= row.kind is not OutboxKind.PROMPT

    def verdict(self, code: int) -> Verdict:
        """Judge the exit as the adapters do."""
        if self.handed_in:
            return Verdict(outcome=Outcome.COMPLETED, result=Result(text="handed in"))
        if code:
            return Verdict(outcome=Outcome.FAILED, cause=Cause.EXIT, message="1", retryable=True)
        if self.listens:
            return Verdict(outcome=Outcome.NEEDS_ATTENTION, cause=Cause.NO_RESULT)
        return Verdict(outcome=Outcome.COMPLETED, result=Result(text="done"))


@dataclass(slots=True)
class Ended:
    """An exit in the journal, with the output that is still to be read."""

    job: Job
    stimulus: WorkerExited


@dataclass(slots=True)
class Pass:
    """A process that was asked to go on as another job, and what that job was told meanwhile."""

    giver: Key
    epoch: str
    job: Job


class FakeHost:
    def __init__(self) -> None:
        self.generation = 1
        self.queue: dict[Key, Job] = {}
        """Starts that wait."""
        self.passes: dict[Key, Pass] = {}
        """Passes that wait, by the job that is to have the process."""
        self.jobs: dict[Key, Job] = {}
        self.exits: dict[Key, Ended] = {}
        self._pid = 100

    @property
    def epoch(self) -> str:
        return f"epoch_{self.generation}"

    def hello(self, *, recovery: bool) -> HostReady:
        return HostReady(
            epoch=self.epoch,
            host=HOST,
            live={
                f"{task}/{number}": LiveJob(job.pid, job.stdin_seq, job.stopping)
                for (task, number), job in self.jobs.items()
            },
            exiting=frozenset(f"{task}/{number}" for task, number in self.exits),
            recovery=recovery,
        )

    def knows(self, key: Key) -> bool:
        return key in self.jobs or key in self.exits

    def perform(self, effect: fx.Effect) -> News:
        """Take an effect. Returns what the host tells at once."""
        match effect:
            case fx.WriteWorker(row=row):
                self._write((row.task_id, row.attempt), row)
            case fx.PassWorker():
                giver = effect.giver_task_id, effect.giver_attempt
                waits = Pass(giver, effect.epoch, Job("pi"))
                self.passes.setdefault((effect.task_id, effect.attempt), waits)
            case fx.StartWorker() | fx.CloseStdin() | fx.StopWorker() | fx.ForgetWorker():
                key = effect.task_id, effect.attempt
                return [*self._what_comes_first(key), *self._do(key, effect)]
            case _:
                pass
        return []

    def launch(self, key: Key) -> WorkerStarted:
        self._pid += 1
        job = self.jobs[key] = self.queue.pop(key)
        job.pid = self._pid
        return WorkerStarted(task_id=key[0], attempt=key[1], pid=job.pid)

    def refuse(self, key: Key, kind: Refusal) -> WorkerRefused:
        del self.queue[key]
        return _refused(key, kind)

    def pass_on(self, key: Key, *, willing: bool = True, exit_first: bool = True) -> News:
        """Answer a pass that waits: the giver ends and its process is the heir's, or nothing is."""
        waits = self.passes.pop(key)
        giver = self.jobs.get(waits.giver)
        idle = giver is not None and not (giver.stopping or giver.stdin_closed)
        if giver is None or not (willing and idle and waits.epoch == self.epoch):
            return [_refused(key, Refusal.NOT_PASSED)]
        assert not self.knows(key), "a process is handed to a job that has one"
        assert giver.to_renew, "a process is handed on with all it remembers"
        del self.jobs[waits.giver]
        gone = self._journal(waits.giver, giver, an_exit(*waits.giver, giver.verdict(0)))
        gone.stimulus = replace(gone.stimulus, passed=True)
        waits.job.pid = giver.pid
        self.jobs[key] = waits.job
        started = WorkerStarted(task_id=key[0], attempt=key[1], pid=giver.pid)
        return [gone.stimulus, started] if exit_first else [started, gone.stimulus]

    def end(self, key: Key, code: int, *, survivors: tuple[Survivor, ...] = ()) -> WorkerExited:
        """A worker and its tree are gone; by the stop if there was one."""
        job = self.jobs.pop(key)
        verdict = job.verdict(code)
        stimulus = an_exit(*key, verdict, stopped=job.stopping, survivors=survivors)
        return self._journal(key, job, stimulus).stimulus

    def lose_controller(self, *, heard: bool = False) -> None:
        """Nobody hears any more what becomes of the passes that it has heard of."""
        for key in list(self.passes):
            self.pass_on(key, willing=heard)
        self.queue.clear()

    def die(self) -> None:
        """The next host kills what is left before it answers; exits are in the journal."""
        self.lose_controller()
        self.jobs.clear()
        self.generation += 1

    def _do(
        self, key: Key, effect: fx.StartWorker | fx.CloseStdin | fx.StopWorker | fx.ForgetWorker
    ) -> News:
        match effect:
            case fx.StartWorker():
                self._start(key, effect)
            case fx.CloseStdin() if key in self.jobs:
                self.jobs[key].stdin_closed = True
            case fx.StopWorker():
                return self._stop(key)
            case fx.ForgetWorker():
                self.exits.pop(key, None)
            case _:
                pass
        return []

    def _start(self, key: Key, effect: fx.StartWorker) -> None:
        if effect.epoch == self.epoch and not self.knows(key):
            self.queue.setdefault(key, Job(effect.adapter))

    def _write(self, key: Key, row: Outbox) -> None:
        waits = self.passes.get(key)
        job = waits.job if waits else self.queue.get(key) or self.jobs.get(key)
        if job is not None:
            job.take(row)

    def _what_comes_first(self, key: Key) -> News:
        """Answer the passes that have to do with a job before anything else is done with it."""
        concerned = [heir for heir, waits in self.passes.items() if key in {heir, waits.giver}]
        return [told for heir in concerned for told in self.pass_on(heir)]

    def _stop(self, key: Key) -> News:
        if key in self.jobs:
            self.jobs[key].stopping = True
        elif key in self.queue:
            job = self.queue.pop(key)
            ended = self._journal(key, job, an_exit(*key, stopped=True, never_started=True))
            return [ended.stimulus]
        return []

    def _journal(self, key: Key, job: Job, stimulus: WorkerExited) -> Ended:
        taken = job.stdin_seq if job.pid else 0
        ended = Ended(job, replace(stimulus, pid=job.pid, stdin_seq=taken))
        self.exits[key] = ended
        return ended


def _refused(key: Key, kind: Refusal) -> WorkerRefused:
    return WorkerRefused(task_id=key[0], attempt=key[1], kind=kind, message=kind)
