"""What is true of a run after every decision (scheduler.md 24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from crewd.core.effects import Decision
from crewd.core.events import AttemptStarting
from crewd.core.model import Capabilities, Outbox
from crewd.core.state import RunState
from crewd.core.states import RUN_TERMINAL, TASK_LIVE, TASK_TERMINAL
from crewd.core.units import Instant
from crewd.core.words import AskStatus, AttemptStatus, RunStatus, TaskStatus
from tests.support.fake_host import Job
from tests.support.rows import Rows

CAN_STEER = Capabilities(can_ask=True, can_steer=True)


def check_progress(state: RunState, *, continues: bool) -> None:
    """A run dispatches, waits for something, or has ended."""
    if continues or state.run.status in RUN_TERMINAL | {RunStatus.BLOCKED}:
        return
    held = state.run.stopping or state.run.requeueing
    will_start = not held and (state.ready or state.delayed)
    keeps = not state.keeping.is_over
    assert state.live or state.run.open_ask_count or will_start or keeps, "the run is stuck"
    if not state.run.stopping:
        return
    queued = [t.id for t in state.tasks.values() if t.status is TaskStatus.QUEUED]
    assert not queued, f"{queued} outlived the end of the run"
    for task_id in state.live:
        assert state.attempts[task_id].status is AttemptStatus.STOPPING
    asked = {a.task_id for a in state.asks.values() if a.status is AskStatus.OPEN}
    assert asked <= state.live, "a run that stops waits for a person"


def check_end(state: RunState) -> None:
    """A finished or blocked run has nothing in flight, due or asked."""
    status = state.run.status
    if status not in RUN_TERMINAL | {RunStatus.BLOCKED}:
        return
    assert not state.live
    assert not state.run.open_ask_count
    assert not state.run.stopping or status is RunStatus.BLOCKED
    unfinished = set(TASK_LIVE)
    if status in RUN_TERMINAL:
        unfinished.add(TaskStatus.QUEUED)
    assert not [t.id for t in state.tasks.values() if t.status in unfinished]
    assert state.next_due() is None
    if status is RunStatus.COMPLETED:
        assert state.run.task_counts[TaskStatus.COMPLETED]


def check_needs(state: RunState, decision: Decision) -> None:
    """What was started had all it needs, and fits the run's limit."""
    started = [r.event.task_id for r in decision.events if isinstance(r.event, AttemptStarting)]
    for task_id in started:
        needed = [state.tasks[d] for d in state.tasks[task_id].spec.depends_on]
        assert all(state.satisfies(task.status) for task in needed), task_id
    promised = sum(task_id in state.promised for task_id in started)
    if len(started) > promised:
        assert state.in_use <= state.run.spec.limits.max_concurrent_workers


def check_slots(state: RunState) -> None:
    """Only who goes on after a person's answer, or is on its way out, works above the limit."""
    assert state.in_use >= 0
    asked = {(ask.task_id, ask.attempt) for ask in state.asks.values()}
    working = [
        attempt.key
        for attempt in map(state.attempts.__getitem__, state.live - state.promised.keys())
        if (attempt.task_id, attempt.number) not in asked
        and attempt.linger_until is None
        and attempt.status is not AttemptStatus.STOPPING
    ]
    assert len(working) <= state.run.spec.limits.max_concurrent_workers, working


def check_promises(state: RunState) -> None:
    """A process is promised once, by an attempt that has it to one that waits for it."""
    givers: set[str] = set()
    for task_id, promise in state.promised.items():
        assert task_id in state.live, f"{task_id} ended and waits for a process"
        assert state.live_attempt(promise.task_id, promise.attempt), "promised by nobody"
        assert promise.task_id not in givers, "promised twice"
        givers.add(promise.task_id)


def check_left_alone(before: Mapping[str, TaskStatus], state: RunState) -> None:
    """A task that has ended changes only when a person reopens it."""
    for task_id, status in before.items():
        if status in TASK_TERMINAL:
            assert state.tasks[task_id].status is status, task_id


def check_jobs(jobs: Mapping[tuple[str, int], Job], rows: Rows) -> None:
    """No task and no process runs twice at once; what was given up may be there yet."""
    proven = [key for key in jobs if not rows.attempts[key].survivors]
    tasks = Counter(task_id for task_id, _ in proven)
    assert all(count == 1 for count in tasks.values()), "a task runs twice at once"
    assert len({job.pid for job in jobs.values()}) == len(jobs), "a process runs twice"


def check_rows(state: RunState, rows: Rows) -> None:
    """Everything that changed was handed to the store."""
    assert state.run == rows.run
    assert state.tasks == rows.tasks
    for attempt in state.attempts.values():
        assert attempt == rows.attempts[attempt.task_id, attempt.number]
    assert state.asks == rows.asks
    kept = {(r.task_id, r.attempt, r.seq): r for r in _outbox(state)}
    assert kept == rows.outbox
    live = Counter(a.task_id for a in rows.attempts.values() if a.status is not AttemptStatus.ENDED)
    assert all(count == 1 for count in live.values()), "two workers on one task"
    assert set(live) == state.live


def check_indexes(state: RunState, loaded: RunState, now: Instant) -> None:
    """What the run keeps in mind is what a daemon that loads it would."""
    assert state.live == loaded.live
    assert state.waiting == loaded.waiting
    assert state.remaining == loaded.remaining
    assert state.dependents == loaded.dependents
    assert state.order == loaded.order
    assert _ready(state, now) == _ready(loaded, now)
    assert _delayed(state, now) == _delayed(loaded, now)
    assert _doomed(state) == _doomed(loaded)
    assert _revivable(state) <= _revivable(loaded)
    counts = Counter(task.status for task in state.tasks.values())
    assert {k: v for k, v in state.run.task_counts.items() if v} == dict(counts)
    open_asks = [a.id for a in state.asks.values() if a.status is AskStatus.OPEN]
    assert state.run.open_ask_count == len(open_asks)
    assert sorted(open_asks) == sorted(i for t in state.tasks.values() for i in t.open_ask_ids)
    if not (_due(state, now) or _due(loaded, now)):
        assert state.next_due() == loaded.next_due()


def _outbox(state: RunState) -> Iterator[Outbox]:
    return (row for rows in state.outbox.values() for row in rows.values())


def _due(state: RunState, now: Instant) -> set[str]:
    """Tasks whose backoff is over, whether that was told or not."""
    held = {t.id: t.not_before for t in state.tasks.values() if t.status is TaskStatus.QUEUED}
    return {i for i, instant in held.items() if instant is not None and instant <= now}


def _ready(state: RunState, now: Instant) -> set[str]:
    return state.ready | (state.delayed & _due(state, now))


def _delayed(state: RunState, now: Instant) -> set[str]:
    return state.delayed - _due(state, now)


def _doomed(state: RunState) -> set[str]:
    queued = (state.tasks[i] for i in state.doomed)
    return {t.id for t in queued if t.status is TaskStatus.QUEUED and state.is_doomed(t)}


def _revivable(state: RunState) -> set[str]:
    if not state.run.requeueing:
        return set()
    return {i for i in state.revivable if state.is_revivable(state.tasks[i])}
