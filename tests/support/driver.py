"""What an actor, its store and its link to the host do around the core, without any of them.

One stimulus is one drain: decide, commit, perform. A crash can come before or after the commit,
and in the middle of the effects; the run then goes on from its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from crewd.core import stimuli as s
from crewd.core.decide import decide
from crewd.core.derive import derived_id
from crewd.core.effects import Continue, Decision, KeepInOrder, KeepText
from crewd.core.errors import CrewdError
from crewd.core.events import Event, Recorded
from crewd.core.marks import Mark
from crewd.core.model import Artifact
from crewd.core.state import RunState
from crewd.core.units import Instant, Span
from crewd.core.words import TaskStatus
from tests.support.builders import START, an_empty_state
from tests.support.fake_host import FakeHost, Job, Key
from tests.support.rows import Rows

Fact = tuple[Event | Mark, Instant]
REPEATABLE = (
    s.WorkerStarted
    | s.WorkerRefused
    | s.WorkerReported
    | s.WorkerExited
    | s.OutboxAccepted
    | s.OutboxRoom
    | s.HostGone
)
"""What the host may tell twice."""


REOPENING = s.Resume | s.Retry | s.Resolve


@dataclass(frozen=True, slots=True)
class Before:
    """How a run was before a decision, and whether that may change what has ended."""

    statuses: dict[str, TaskStatus]
    reopening: bool


@dataclass(slots=True)
class Crash:
    """The daemon ends in the next drain: before its commit, or after so many effects."""

    committed: bool
    performed: int


@dataclass(slots=True)
class Committed:
    """One append: the facts it made durable, and the sequence its rows were stamped with."""

    facts: list[Fact]
    sequence: int


class Driver:
    """`observe` sees every decision before it is committed, with the state that it led to."""

    def __init__(self, observe: Callable[[Before, s.Stimulus, Decision], None]) -> None:
        self.state: RunState = an_empty_state()
        self.rows = Rows()
        self.host = FakeHost()
        self.now = START
        self.connected = False
        self.continues = False
        self.crash: Crash | None = None
        self.news: list[s.Stimulus] = []
        """What the host told that was not heard yet, in order."""
        self.texts: list[list[KeepText]] = []
        """What is being kept: of each of these lists, the texts that are still to come."""
        self.heard = False
        """Whether the host has heard of a pass by the time that the daemon loses it."""
        self.unanswered: set[Key] = set()
        """Jobs that may have been handed a process before the connection was lost."""
        self.events: list[Recorded] = []
        self.commits: list[Committed] = []
        self.facts: list[Fact] = []
        self._observe = observe
        self._sequence = 0

    def tell(self, stimulus: s.Stimulus) -> bool:
        """Say whether it was decided; False when it was refused."""
        self.facts = []
        before = Before(
            {task.id: task.status for task in self.state.tasks.values()},
            reopening=bool(self.state.run.requeueing) or isinstance(stimulus, REOPENING),
        )
        if isinstance(stimulus, s.GoOn):
            self.continues = False
        try:
            decision = decide(self.state, stimulus, self.now)
        except CrewdError:
            assert not self.facts, "a refused command has changed something"
            return False
        self._observe(before, stimulus, decision)
        crash, self.crash = self.crash, None
        if crash is not None and not crash.committed:
            self.restart()
            return True
        self._commit(decision)
        self._perform(decision, crash)
        if crash is None and not self.continues and isinstance(stimulus, REPEATABLE):
            self._repeat(stimulus)
        return True

    def pass_time(self, span: Span) -> None:
        self.now = Instant(self.now + span)
        self.tell(s.Due())

    def hear(self) -> None:
        """Take the oldest of the host's news."""
        stimulus = self.news.pop(0)
        if isinstance(stimulus, s.WorkerExited):
            key = (stimulus.task_id, stimulus.attempt)
            ended = self.host.exits.get(key)
            if ended is None or not self.read(key, ended.job):
                return
        self.tell(stimulus)

    def read(self, key: Key, job: Job) -> bool:
        """Report what the worker said since the last commit. False when a crash came between."""
        attempt = self.state.live_attempt(*key)
        if attempt is None or attempt.stdout_offset == len(job.said):
            return True
        state = self.state
        unread = job.said[attempt.stdout_offset :]
        self.tell(
            s.WorkerReported(
                task_id=key[0],
                attempt=key[1],
                stdout_offset=len(job.said),
                stderr_offset=0,
                stdout_bytes=len(job.said),
                stderr_bytes=0,
                adapter_state="{}",
                reports=tuple(report for line in unread for report in line),
            )
        )
        return state is self.state

    def keep(self, index: int, *, room: bool = True) -> None:
        """Have the next text of one of the lists on the disk, unless there is no room."""
        texts = self.texts[index % len(self.texts)]
        if not room:
            first = texts[0]
            self.tell(s.TextWaits(task_id=first.task_id, attempt=first.attempt, message="full"))
            return
        text = texts.pop(0)
        self.texts = [left for left in self.texts if left]
        self.tell(s.TextKept(artifact=_artifact(self.state.run.id, text)))

    # Ends and beginnings

    def restart(self) -> None:
        """The daemon comes back: rows are loaded, the host is not there yet."""
        self._lose_host()
        self.unanswered.clear()
        self.texts.clear()
        self.state = self.rows.load()
        self.continues = True

    def disconnect(self) -> None:
        self.unanswered = set(self.host.passes)
        self._lose_host()
        self.tell(s.HostGone())

    def connect(self, *, recovery: bool) -> None:
        host = self.host
        self.connected = True
        self.news = [ended.stimulus for ended in host.exits.values()]
        for key in sorted(self.unanswered):
            if not host.knows(key):
                kind = s.Refusal.NOT_PASSED
                self.news.append(
                    s.WorkerRefused(task_id=key[0], attempt=key[1], kind=kind, message=kind)
                )
        self.unanswered.clear()
        for key, job in host.jobs.items():
            job.stopping |= self.state.live_attempt(*key) is None
        self.tell(host.hello(recovery=recovery))

    def fork(self) -> Driver:
        """Return a daemon with a world of its own that is as this one; nobody looks at it."""
        other = Driver(lambda _before, _stimulus, _decision: None)
        other.rows, other.host = self.rows.fork(), deepcopy(self.host)
        other.now, other.connected = self.now, self.connected
        other.state = other.rows.load()
        other._sequence = self._sequence
        return other

    def _lose_host(self) -> None:
        self.host.lose_controller(heard=self.heard)
        self.connected = False
        self.news.clear()

    # One drain

    def _repeat(self, stimulus: s.Stimulus) -> None:
        again = decide(self.state, stimulus, self.now)
        assert not again.events, "a repeated stimulus was told again"
        assert not self.state.changed.run, "a repeated stimulus changed something"

    def _commit(self, decision: Decision) -> None:
        self.events += decision.events
        self._sequence += len(decision.events)
        sequence = self._sequence if decision.events else self.state.run.last_sequence
        if self.state.changed.run:
            self.rows.store(self.state.take_changes(sequence))
            self.commits.append(Committed(self.facts, sequence))

    def _perform(self, decision: Decision, crash: Crash | None) -> None:
        if Continue() in decision.effects:
            self.continues = True
        reach = decision.effects if crash is None else decision.effects[: crash.performed]
        for effect in reach:
            if isinstance(effect, KeepInOrder):
                self.texts.append(list(effect.texts))
            elif isinstance(effect, KeepText):
                self.texts.append([effect])
            elif self.connected:
                self.news += self.host.perform(effect)
        if crash is not None:
            self.restart()


def _artifact(run_id: str, text: KeepText) -> Artifact:
    key = f"{run_id}/{text.task_id}/{text.attempt}"
    return Artifact(
        id=derived_id("art", key, text.kind, text.name),
        run_id=run_id,
        task_id=text.task_id,
        attempt=text.attempt,
        name=text.name,
        kind=text.kind,
        sha256="0" * 64,
    )
