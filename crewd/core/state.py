"""One run in memory: its rows, the indexes that make a decision cheap, and what changed.

The rows are what the store loads; every index is derived from them when a `RunState` is built and
kept by `crewd.core.apply` from then on. A task costs the same in a run of ten thousand as in one
of a hundred: nothing here walks over all tasks once it is built.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from crewd.core.changes import Changes
from crewd.core.model import (
    Artifact,
    Ask,
    Attempt,
    Outbox,
    Run,
    Task,
)
from crewd.core.spec import OnNeedsAttention
from crewd.core.states import RUN_TERMINAL, TASK_DEAD
from crewd.core.units import Instant
from crewd.core.words import AskStatus, AttemptStatus, RunStatus, TaskStatus

DEPENDENCY = "dependency"
"""`status_reason` of a task that was skipped because something it needs ended badly."""


class RunState:
    """A run and all that `decide` needs to know of it."""

    def __init__(
        self,
        run: Run,
        *,
        tasks: Iterable[Task] = (),
        attempts: Iterable[Attempt] = (),
        asks: Iterable[Ask] = (),
        outbox: Iterable[Outbox] = (),
    ) -> None:
        self.run = run
        self.tasks: dict[str, Task] = {}
        self.attempts: dict[str, Attempt] = {}
        """The latest attempt of each task, by task id."""
        self.asks: dict[str, Ask] = {}
        self.task_asks: dict[str, list[str]] = {}
        self.outbox: dict[str, dict[int, Outbox]] = {}
        """What the host does not have yet, by task id and sequence."""
        self.live: set[str] = set()
        """Tasks whose latest attempt has not ended."""
        self.waiting: set[str] = set()
        """Live tasks that wait for a person; they hold no slot."""
        self.dependents: dict[str, list[str]] = {}
        self.remaining: dict[str, int] = {}
        self.ready: set[str] = set()
        self.delayed: set[str] = set()
        self.doomed, self.revivable = deque[str](), deque[str]()
        self.keeping = Keeping()
        self.promised = Promises()
        self.order: list[str] = []
        self.sweep_at = 0
        self.epoch = self.host = self.artifacts = ""
        """The host process that would start a worker now, how it names itself, and the folder of
        this run's artifacts; all empty while there is no host."""
        self._ready_heap: list[tuple[int, str]] = []
        self._due_heap: list[tuple[Instant, str, str]] = []
        self._changed = _Changed()
        self._load(attempts, asks, outbox)
        self.add_tasks(tasks)
        self._rebuild()

    # What may run, and when

    def satisfies(self, status: TaskStatus) -> bool:
        """Say whether a task in this status lets its dependents run."""
        if status is TaskStatus.NEEDS_ATTENTION:
            return self.run.spec.on_needs_attention is OnNeedsAttention.CONTINUE
        return status is TaskStatus.COMPLETED

    @property
    def in_use(self) -> int:
        """Slots that this run's workers hold now."""
        return len(self.live) - len(self.waiting) - len(self.promised)

    @property
    def may_start(self) -> bool:
        run = self.run
        return not (run.stopping or run.requeueing or not self.epoch or run.status in RUN_TERMINAL)

    def wanted_slots(self) -> int:
        """Say how many more workers this run would start now."""
        if not self.may_start:
            return 0
        return max(
            0, min(len(self.ready), self.run.spec.limits.max_concurrent_workers - self.in_use)
        )

    def first_ready(self) -> Task | None:
        """Return the first ready task in file order, and leave it where it is."""
        while self._ready_heap and self._ready_heap[0][1] not in self.ready:
            heappop(self._ready_heap)
        return self.tasks[self._ready_heap[0][1]] if self._ready_heap else None

    def pop_ready(self) -> Task | None:
        """Take the first ready task in file order."""
        while self._ready_heap:
            _, task_id = heappop(self._ready_heap)
            if task_id in self.ready:
                self.ready.discard(task_id)
                return self.tasks[task_id]
        return None

    def live_attempt(self, task_id: str, number: int) -> Attempt | None:
        """Return the attempt if it is the task's latest and has not ended."""
        attempt = self.attempts.get(task_id)
        if attempt is None or attempt.number != number or attempt.status is AttemptStatus.ENDED:
            return None
        return attempt

    def open_asks(self, task_id: str) -> Iterator[Ask]:
        for ask_id in self.task_asks.get(task_id, ()):
            ask = self.asks[ask_id]
            if ask.status is AskStatus.OPEN:
                yield ask

    # Deadlines

    def arm(self, instant: Instant | None, kind: str, ref: str) -> None:
        """Remember a deadline that stands in a row; a stale one is ignored when it comes up."""
        if instant is not None:
            heappush(self._due_heap, (instant, kind, ref))

    def next_due(self) -> Instant | None:
        while self._due_heap and not self._stands(self._due_heap[0]):
            heappop(self._due_heap)
        return self._due_heap[0][0] if self._due_heap else None

    def pop_due(self, now: Instant) -> tuple[str, str] | None:
        """Take the next deadline that has passed, as its kind and what it is about."""
        instant = self.next_due()
        if instant is None or instant > now:
            return None
        _, kind, ref = heappop(self._due_heap)
        return kind, ref

    def _stands(self, due: tuple[Instant, str, str]) -> bool:
        instant, kind, ref = due
        if kind == "run":
            return self.run.deadline == instant and self.run.status not in RUN_TERMINAL
        if kind == "ask":
            ask = self.asks.get(ref)
            return ask is not None and ask.status is AskStatus.OPEN and ask.expire_time == instant
        if kind == "retry":
            return ref in self.delayed and self.tasks[ref].not_before == instant
        attempt = self.attempts.get(ref)
        return attempt is not None and ref in self.live and instant in _deadlines_of(attempt)

    # Building and keeping the indexes

    def add_tasks(self, tasks: Iterable[Task]) -> None:
        added = list(tasks)
        for task in added:
            self.tasks[task.id] = task
            self.order.append(task.id)
        for task in added:
            needed = set(task.spec.depends_on)
            for dependency in needed:
                self.dependents.setdefault(dependency, []).append(task.id)
            self.remaining[task.id] = sum(not self._is_satisfied(d) for d in needed)

    def _is_satisfied(self, task_id: str) -> bool:
        task = self.tasks.get(task_id)
        return task is not None and self.satisfies(task.status)

    def add_ask(self, ask: Ask) -> None:
        if ask.id not in self.asks:
            self.task_asks.setdefault(ask.task_id, []).append(ask.id)
        self.asks[ask.id] = ask
        self.arm(ask.expire_time, "ask", ask.id)

    def queue(self, task: Task) -> None:
        """Put a queued task where its dependencies and its backoff say it belongs."""
        if self.is_doomed(task):
            self.doomed.append(task.id)
        elif self.remaining[task.id] > 0:
            return
        elif task.not_before is not None:
            self.delayed.add(task.id)
            self.arm(task.not_before, "retry", task.id)
        else:
            self.make_ready(task)

    def unqueue(self, task_id: str) -> None:
        self.ready.discard(task_id)
        self.delayed.discard(task_id)

    def is_doomed(self, task: Task) -> bool:
        known = (self.tasks.get(d) for d in task.spec.depends_on)
        return any(t is not None and t.status in TASK_DEAD for t in known)

    def is_revivable(self, task: Task) -> bool:
        """Say whether the requeueing under way puts this task back."""
        if self.run.requeueing == "all":
            return task.status in TASK_DEAD or task.status is TaskStatus.NEEDS_ATTENTION
        return (
            self.run.requeueing == "dependents"
            and task.status in TASK_DEAD
            and task.status_reason in {DEPENDENCY, "fail_fast"}
            and not self.is_doomed(task)
        )

    def _load(
        self, attempts: Iterable[Attempt], asks: Iterable[Ask], outbox: Iterable[Outbox]
    ) -> None:
        for attempt in attempts:
            self.attempts[attempt.task_id] = attempt
        for ask in asks:
            self.add_ask(ask)
        for row in outbox:
            self.outbox.setdefault(row.task_id, {})[row.seq] = row

    def make_ready(self, task: Task) -> None:
        """Let a queued task start as soon as there is a slot."""
        self.delayed.discard(task.id)
        self.ready.add(task.id)
        heappush(self._ready_heap, (task.position, task.id))

    def _rebuild(self) -> None:
        for task in self.tasks.values():
            attempt = self.attempts.get(task.id)
            if attempt is not None and attempt.status is not AttemptStatus.ENDED:
                self.live.add(task.id)
                if task.status is TaskStatus.WAITING:
                    self.waiting.add(task.id)
                for instant in _deadlines_of(attempt):
                    self.arm(instant, "attempt", task.id)
            elif task.status is TaskStatus.QUEUED:
                self.queue(task)
            elif task.has_unkept_result:
                self.keeping.unasked.append(task.id)
            if self.run.requeueing and self.is_revivable(task):
                self.revivable.append(task.id)
        self.arm(self.run.deadline, "run", "")

    # What is to be stored

    @property
    def changed(self) -> _Changed:
        return self._changed

    def stamp(self, sequence: int) -> None:
        """Say up to which event of the log the rows changed so far stand."""
        self._changed.stamp(self.run, sequence)

    def take_changes(self, sequence: int) -> Changes:
        """Hand over what changed since the last call, stamped with the last sequence of it."""
        self.stamp(sequence)
        changes = self._changed.take(self.run)
        self._changed = _Changed()
        return changes

    @property
    def is_settled(self) -> bool:
        """Say whether nothing can happen until a person does something."""
        return (
            self.run.status in RUN_TERMINAL or self.run.status is RunStatus.BLOCKED
        ) and not self.live


@dataclass(slots=True)
class Promise:
    """A process that is to be handed on: whose it is, and how far that has come."""

    task_id: str
    attempt: int
    renewed: bool = False
    """Its session knows nothing of the task before it."""
    passed: bool = False
    """The host was told."""


class Promises(dict[str, Promise]):
    """Processes that live attempts wait for, by the task that will get each.

    Not in the rows: when the host or the daemon was away the attempts start in processes of their
    own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.done: dict[str, int] = {}
        """How many tasks a process has done before the live one it was handed on to."""


class Keeping:
    """Tasks whose result is to be an artifact of its own, and is none yet."""

    def __init__(self) -> None:
        self.unasked: deque[str] = deque()
        self.asked: set[str] = set()

    @property
    def is_over(self) -> bool:
        return not self.unasked and not self.asked


class _Changed:
    """Rows touched since the last append."""

    def __init__(self) -> None:
        self.run = False
        self.run_is_new = False
        self.delete_run = False
        self.added_tasks: dict[str, Task] = {}
        self.tasks: dict[str, Task] = {}
        self.added_attempts: dict[tuple[str, int], Attempt] = {}
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.asks: dict[str, Ask] = {}
        self.artifacts: list[Artifact] = []
        self.outbox: dict[tuple[str, int, int], Outbox] = {}
        self.outbox_taken: dict[tuple[str, int], int] = {}

    def task(self, task: Task) -> None:
        if task.id not in self.added_tasks:
            self.tasks[task.id] = task

    def attempt(self, attempt: Attempt) -> None:
        key = (attempt.task_id, attempt.number)
        if key not in self.added_attempts:
            self.attempts[key] = attempt

    def taken(self, task_id: str, attempt: int, seq: int) -> None:
        key = (task_id, attempt)
        self.outbox_taken[key] = max(seq, self.outbox_taken.get(key, 0))

    def stamp(self, run: Run, sequence: int) -> None:
        for task in (*self.added_tasks.values(), *self.tasks.values()):
            task.last_sequence = sequence
        for ask in self.asks.values():
            ask.last_sequence = sequence
        for artifact in self.artifacts:
            artifact.last_sequence = sequence
        if self.run:
            run.last_sequence = sequence

    def take(self, run: Run) -> Changes:
        return Changes(
            run=run if self.run else None,
            run_is_new=self.run_is_new,
            added_tasks=tuple(self.added_tasks.values()),
            tasks=tuple(self.tasks.values()),
            added_attempts=tuple(self.added_attempts.values()),
            attempts=tuple(self.attempts.values()),
            asks=tuple(self.asks.values()),
            artifacts=tuple(self.artifacts),
            outbox=tuple(self.outbox.values()),
            outbox_taken=tuple((t, n, seq) for (t, n), seq in self.outbox_taken.items()),
            delete_run=self.delete_run,
        )


def _deadlines_of(attempt: Attempt) -> tuple[Instant | None, ...]:
    return attempt.deadline, attempt.stall_at, attempt.linger_until, attempt.force_until
