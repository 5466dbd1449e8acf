"""Rows as a store would keep them: copied out of every change, loaded again as after a crash."""

from __future__ import annotations

from dataclasses import replace

from crewd.core.changes import Changes
from crewd.core.model import Ask, Attempt, Outbox, Run, Task
from crewd.core.state import RunState


class Rows:
    """The committed rows of one run."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.tasks: dict[str, Task] = {}
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.asks: dict[str, Ask] = {}
        self.outbox: dict[tuple[str, int, int], Outbox] = {}

    def store(self, changes: Changes) -> None:
        """Commit a change. New rows may not be there yet, changed ones must be."""
        if changes.run is not None:
            assert changes.run_is_new is (self.run is None)
            self.run = a_copy(changes.run)
        for task in changes.added_tasks:
            assert task.id not in self.tasks
            self.tasks[task.id] = replace(task)
        for task in changes.tasks:
            assert task.id in self.tasks
            self.tasks[task.id] = replace(task)
        for attempt in changes.added_attempts:
            assert (attempt.task_id, attempt.number) not in self.attempts
            self.attempts[attempt.task_id, attempt.number] = replace(attempt)
        for attempt in changes.attempts:
            assert (attempt.task_id, attempt.number) in self.attempts
            self.attempts[attempt.task_id, attempt.number] = replace(attempt)
        for ask in changes.asks:
            self.asks[ask.id] = replace(ask)
        self._store_outbox(changes)

    def load(self) -> RunState:
        """Take the run up as an actor does after a start of the daemon."""
        assert self.run is not None
        latest = [a for a in self.attempts.values() if a.number == self.tasks[a.task_id].attempt]
        return RunState(
            a_copy(self.run),
            tasks=[replace(task) for task in self.tasks.values()],
            attempts=[replace(attempt) for attempt in latest],
            asks=[replace(ask) for ask in self.asks.values()],
            outbox=list(self.outbox.values()),
        )

    def fork(self) -> Rows:
        """Return rows of their own: what is stored is never changed, only replaced."""
        other = Rows()
        other.run = self.run
        other.tasks, other.attempts = dict(self.tasks), dict(self.attempts)
        other.asks, other.outbox = dict(self.asks), dict(self.outbox)
        return other

    def _store_outbox(self, changes: Changes) -> None:
        for row in changes.outbox:
            key = (row.task_id, row.attempt, row.seq)
            assert key not in self.outbox
            self.outbox[key] = row
        for task_id, attempt, taken in changes.outbox_taken:
            for seq in range(1, taken + 1):
                self.outbox.pop((task_id, attempt, seq), None)


def a_copy(run: Run) -> Run:
    return replace(run, task_counts=dict(run.task_counts))
