"""A host without processes: it takes effects, and says what its jobs did when it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from crewd.core import effects as fx
from crewd.core.model import Result, Survivor
from crewd.core.reports import Report, Verdict
from crewd.core.stimuli import HostReady, LiveJob, Refusal, WorkerExited, WorkerRefused
from crewd.core.words import Cause, Outcome
from tests.support.builders import HOST, an_exit

Key = tuple[str, int]


@dataclass(slots=True)
class Job:
    """A worker, and every report that is in what it has said so far."""

    pid: int
    listens: bool
    stdin_seq: int = 0
    stdin_closed: bool = False
    stopping: bool = False
    said: list[tuple[Report, ...]] = field(default_factory=list[tuple[Report, ...]])
    refs: set[str] = field(default_factory=set[str])
    handed_in: bool = False

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


class FakeHost:
    def __init__(self) -> None:
        self.generation = 1
        self.queue: dict[Key, bool] = {}
        """Starts that wait, and whether the worker gets a stdin."""
        self.jobs: dict[Key, Job] = {}
        self.exits: dict[Key, Ended] = {}
        self.written: dict[Key, int] = {}
        """Writes to starts that wait."""
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

    def perform(self, effect: fx.Effect) -> Key | None:
        """Take an effect. Returns the key of a job that has ended by it without being started."""
        match effect:
            case fx.StartWorker():
                self._start(effect)
            case fx.WriteWorker(row=row):
                self._write((row.task_id, row.attempt), row.seq)
            case fx.CloseStdin(task_id=task, attempt=number):
                if (task, number) in self.jobs:
                    self.jobs[task, number].stdin_closed = True
            case fx.StopWorker(task_id=task, attempt=number):
                return self._stop((task, number))
            case fx.ForgetWorker(task_id=task, attempt=number):
                self.exits.pop((task, number), None)
            case fx.Continue() | fx.KeepText() | fx.KeepInOrder() | fx.PassWorker():
                pass
        return None

    def launch(self, key: Key) -> Job:
        self._pid += 1
        job = Job(self._pid, listens=self.queue.pop(key), stdin_seq=self.written.pop(key, 0))
        self.jobs[key] = job
        return job

    def refuse(self, key: Key, kind: Refusal) -> WorkerRefused:
        del self.queue[key]
        self.written.pop(key, None)
        return WorkerRefused(task_id=key[0], attempt=key[1], kind=kind, message=kind)

    def end(self, key: Key, code: int, *, survivors: tuple[Survivor, ...] = ()) -> None:
        """A worker and its tree are gone; by the stop if there was one."""
        job = self.jobs.pop(key)
        verdict = job.verdict(code)
        stimulus = an_exit(*key, verdict, stopped=job.stopping, survivors=survivors)
        self.exits[key] = Ended(job, stimulus)

    def lose_controller(self) -> None:
        self.queue.clear()
        self.written.clear()

    def die(self) -> None:
        """The next host kills what is left before it answers; exits are in the journal."""
        self.lose_controller()
        self.jobs.clear()
        self.generation += 1

    def _start(self, effect: fx.StartWorker) -> None:
        key = (effect.task_id, effect.attempt)
        if effect.epoch == self.epoch and key not in self.jobs and key not in self.exits:
            self.queue.setdefault(key, effect.stdin)

    def _write(self, key: Key, seq: int) -> None:
        if key in self.queue:
            assert seq <= self.written.get(key, 0) + 1, "a gap in what the worker is told"
            self.written[key] = max(seq, self.written.get(key, 0))
        elif key in self.jobs:
            job = self.jobs[key]
            assert seq <= job.stdin_seq + 1, "a gap in what the worker is told"
            assert seq <= job.stdin_seq or not job.stdin_closed, "told after its stdin was closed"
            job.stdin_seq = max(seq, job.stdin_seq)

    def _stop(self, key: Key) -> Key | None:
        if key in self.jobs:
            self.jobs[key].stopping = True
        elif key in self.queue:
            del self.queue[key]
            self.written.pop(key, None)
            job = Job(0, listens=False, stopping=True)
            self.exits[key] = Ended(job, an_exit(*key, stopped=True, never_started=True))
            return key
        return None
