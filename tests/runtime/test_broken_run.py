"""A run that the daemon itself cannot carry on is stopped, and names the incident."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from crewd.core import stimuli as s
from crewd.core.decide import decide
from crewd.core.effects import Decision, Effect, StopWorker
from crewd.core.reports import Asked
from crewd.core.state import RunState
from crewd.core.units import Instant
from crewd.core.words import RunStatus
from crewd.rpc.encode import encode_event
from crewd.runtime import actor as module
from crewd.runtime.actor import Actor, Surroundings
from crewd.runtime.clock import Clock
from crewd.runtime.slots import Slots
from crewd.runtime.timers import Timers
from crewd.store import Log, Reads
from tests.support.builders import (
    KILLED,
    RUN_ID,
    a_create,
    a_question,
    a_spec,
    a_worker,
    an_empty_state,
    an_exit,
    host_ready,
)


class World:
    """One actor with a store of its own, whose rows are loaded again whenever it breaks."""

    def __init__(self, log: Log, reads: Reads) -> None:
        self._reads = reads
        self.stopping = asyncio.Event()
        self.pauses: list[float] = []
        self.asked = 0
        self._tasks: set[asyncio.Task[None]] = set()
        around = Surroundings(
            log=log,
            clock=Clock(),
            slots=Slots(4, lambda _run: None),
            timers=Timers(Clock(), lambda _run: None),
            encode=encode_event,
            perform=self._perform,
            reload=self._reload,
            settled=lambda _actor: None,
            spawn=self._spawn,
        )
        self.actor = Actor(an_empty_state(), around)

    def _perform(self, _run: str, _state: RunState, effects: Sequence[Effect]) -> None:
        if any(isinstance(effect, StopWorker) for effect in effects):
            self.stopping.set()

    def _spawn(self, actor: Actor) -> None:
        task = asyncio.get_running_loop().create_task(actor.drain())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reload(self, actor: Actor) -> None:
        self.pauses.append(actor.pause)
        task = asyncio.get_running_loop().create_task(self._restart(actor))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _restart(self, actor: Actor) -> None:
        """Load the rows, and have the worker's output read again, as the supervisor does."""
        rows = await self._reads.load(RUN_ID)
        assert rows is not None
        state = RunState(
            rows.run, tasks=rows.tasks, attempts=rows.attempts, asks=rows.asks, outbox=rows.outbox
        )
        live = {"a/1": s.LiveJob(7, 1, stopping=False)}
        actor.restart(state, [host_ready(live=live)])
        actor.tell(self.poison())

    def poison(self) -> s.WorkerReported:
        """Return the same words each time, with another id drawn for the question in them."""
        self.asked += 1
        return s.WorkerReported(
            task_id="a",
            attempt=1,
            stdout_offset=10,
            stderr_offset=0,
            stdout_bytes=10,
            stderr_bytes=0,
            adapter_state="{}",
            reports=(a_question(ask_id=f"ask_{self.asked}"),),
        )


def unheard(*_: object) -> None:
    """Nobody watches."""


@pytest_asyncio.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    def breaking(state: RunState, stimulus: s.Stimulus, now: Instant) -> Decision:
        reports = getattr(stimulus, "reports", ())
        if any(isinstance(r, Asked) for r in reports) and state.run.stopping != "incident":
            raise RuntimeError("a bug of ours")
        return decide(state, stimulus, now)

    monkeypatch.setattr(module, "decide", breaking)
    log = Log(tmp_path / "db", on_commit=unheard, on_state=print, on_fatal=print)
    reads = Reads(tmp_path / "db")
    world = World(log, reads)
    await world.actor.ask(a_create(a_spec(a_worker("a"))))
    world.actor.tell(host_ready())
    await world.actor.ask(s.WorkerStarted(task_id="a", attempt=1, pid=7))
    yield world
    await reads.close()
    await log.close()


async def test_a_bug_that_comes_back_with_the_same_output_ends_the_run(world: World) -> None:
    world.actor.tell(world.poison())
    async with asyncio.timeout(20):
        await world.stopping.wait()

    await world.actor.ask(an_exit("a", 1, KILLED, stopped=True))

    run = world.actor.state.run
    assert run.status is RunStatus.FAILED
    assert "internal error, incident incident_" in run.status_message
    assert world.pauses == [0.0, 1.0]
