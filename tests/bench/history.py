"""Databases of a past: runs that were decided by the real core and stored by the real log."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from crewd.core.decide import decide
from crewd.core.effects import StartWorker
from crewd.core.events import CHATTER
from crewd.core.model import DAEMON, Run
from crewd.core.reports import Verdict
from crewd.core.spec import Limits, RunSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.stimuli import Capacity, Create, HostReady, Stimulus, WorkerExited, WorkerStarted
from crewd.core.units import Instant
from crewd.core.words import Outcome
from crewd.rpc.encode import encode_event
from crewd.store import Batch, Entry, Log
from crewd.v1.attempt_event_pb2 import MessagePosted
from crewd.v1.event_pb2 import Event

TASKS_A_RUN = 10
_DONE = Verdict(outcome=Outcome.COMPLETED)
_HOST = HostReady(epoch="epoch_1", host="boot_1/7", live={}, exiting=frozenset(), recovery=False)
_BATCH = 500
_IN_FLIGHT = 4


def unheard(_batches: Sequence[Batch]) -> None:
    """Take what was committed for nobody."""


def end(error: BaseException) -> None:
    """End this process: what it measures cannot be stored."""
    sys.exit(f"nothing can be stored: {error}")


@asynccontextmanager
async def a_log(database: Path) -> AsyncGenerator[Log]:
    log = Log(database, on_commit=unheard, on_state=print, on_fatal=end)
    try:
        yield log
    finally:
        await log.close()


async def store_finished(database: Path, runs: int) -> None:
    """Store runs of ten plain tasks that have completed."""
    async with a_log(database) as log:
        for n in range(runs):
            await _Past(log, f"run_done{n:05}", ("/usr/bin/true",)).finish()


async def store_open(database: Path, runs: int) -> None:
    """Store runs of ten plain tasks that are about to begin; their workers would sleep."""
    async with a_log(database) as log:
        for n in range(runs):
            await _Past(log, f"run_open{n:05}", ("/usr/bin/sleep", "600")).begin()


async def store_talkative(database: Path, run_id: str, events: int) -> int:
    """Store a finished run with so many messages; return the sequence before the first."""
    async with a_log(database) as log:
        past = _Past(log, run_id, ("/usr/bin/true",))
        await past.finish()
        before = log.next_sequence - 1
        commits: list[asyncio.Future[None]] = []
        for done in range(0, events, _BATCH):
            entries = messages(log, run_id, min(_BATCH, events - done))
            commits.append(log.append(run_id, entries, past.state.take_changes(before)))
            if len(commits) == _IN_FLIGHT:
                await commits.pop(0)
        await asyncio.gather(*commits)
    return before


def messages(log: Log, run_id: str, count: int) -> list[Entry]:
    """Give so many events of a worker that talks, each of about 300 bytes."""
    first = log.take_sequences(count)
    posted = MessagePosted(role="assistant", text="x" * 220)
    event = Event(run_id=run_id, task_id="t0", attempt=1, kind="message_posted")
    event.message_posted.CopyFrom(posted)
    rest = event.SerializeToString()
    return [
        Entry(
            sequence=sequence,
            run_sequence=sequence,
            kind="message_posted",
            chatter=True,
            # A message's parts may stand in any order.
            data=rest + Event(sequence=sequence, run_sequence=sequence).SerializeToString(),
        )
        for sequence in range(first, first + count)
    ]


class _Past:
    """A run whose stimuli are made up, one append for each."""

    def __init__(self, log: Log, run_id: str, command: tuple[str, ...]) -> None:
        self._log = log
        self._command = command
        tasks = tuple(
            TaskSpec(id=f"t{n}", command=command, executable=command[0], cwd="/")
            for n in range(TASKS_A_RUN)
        )
        limits = Limits(max_concurrent_workers=TASKS_A_RUN)
        self._spec = RunSpec(goal="a past", title="a past", cwd="/", limits=limits, tasks=tasks)
        self.state = RunState(Run(id=run_id, spec=self._spec))

    async def begin(self) -> None:
        create = Create(run_id=self.state.run.id, spec=self._spec, actor=DAEMON)
        await self._tell(create)

    async def finish(self) -> None:
        await self.begin()
        await self._tell(_HOST)
        starts = await self._tell(Capacity(TASKS_A_RUN))
        assert len(starts) == TASKS_A_RUN
        started = [WorkerStarted(task_id=s.task_id, attempt=s.attempt, pid=7) for s in starts]
        await self._tell(*started)
        await self._tell(*(_exit(start) for start in starts))
        assert self.state.run.end_time is not None

    async def _tell(self, *stimuli: Stimulus) -> list[StartWorker]:
        now = Instant(time.time_ns() // 1000)
        entries: list[Entry] = []
        starts: list[StartWorker] = []
        for stimulus in stimuli:
            decision = decide(self.state, stimulus, now)
            starts += [e for e in decision.effects if isinstance(e, StartWorker)]
            first = self._log.take_sequences(len(decision.events))
            for sequence, recorded in enumerate(decision.events, first):
                kind, data = encode_event(recorded, self.state, sequence)
                entries.append(
                    Entry(
                        sequence=sequence,
                        run_sequence=recorded.run_sequence,
                        kind=kind,
                        chatter=isinstance(recorded.event, CHATTER),
                        data=data,
                    )
                )
        last = entries[-1].sequence if entries else self.state.run.last_sequence
        await self._log.append(self.state.run.id, entries, self.state.take_changes(last))
        return starts


def _exit(start: StartWorker) -> WorkerExited:
    return WorkerExited(
        task_id=start.task_id,
        attempt=start.attempt,
        exit_code=0,
        signal=None,
        survivors=(),
        stopped=False,
        never_started=False,
        verdict=_DONE,
    )
