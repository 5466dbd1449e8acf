"""Owns the actors: makes one for a run on first need, drops it when only a person can go on.

Also the runtime's face to the rpc edge: create, command, drain, and what there is to tell.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

import structlog

from crewd.core.effects import Effect
from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Run
from crewd.core.state import RunState
from crewd.core.stimuli import Command, Create, Due, GoOn, HostGone, Stimulus
from crewd.runtime.actor import Actor, Encode, Render, RequestKey, Surroundings
from crewd.runtime.admission import admit, check_disk, disk_trouble
from crewd.runtime.clock import Clock
from crewd.runtime.housekeeping import clear_left
from crewd.runtime.jobs import JobKey, Jobs, of_run
from crewd.runtime.keeping import TextKeeper, texts_of
from crewd.runtime.pump import PumpTools
from crewd.runtime.requests import Requests
from crewd.runtime.slots import Slots
from crewd.runtime.timers import Timers
from crewd.runtime.tokens import TaskTokens
from crewd.store.loading import LoadedRun
from crewd.store.log import Log
from crewd.store.reads import Reads
from crewd.workers import host_link as host
from crewd.workers.environment import Environment

log = structlog.get_logger()

_HOST_WORDS: Final = {
    host.HostStatus.STARTING: "connecting",
    host.HostStatus.CONNECTED: "ready",
    host.HostStatus.UNREACHABLE: "unreachable",
}


class DrainMode(StrEnum):
    LEAVE_RUNNING = "leave_running"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """What the daemon can tell of its runs' workers and of the host."""

    host_status: str
    """`connecting`, `ready` or `unreachable`."""
    host_message: str
    host_version: str
    host_protocol: int
    host_pid: int
    running_workers: int
    max_workers: int
    draining: bool
    paused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the supervisor is made of."""

    log: Log
    reads: Reads
    encode: Encode
    tools: PumpTools
    environment: Environment
    own_variables: dict[str, str]
    tokens: TaskTokens
    max_workers: int


class Supervisor:
    """All open runs. Everything here runs on the event loop's thread."""

    def __init__(self, parts: Parts, tasks: asyncio.TaskGroup) -> None:
        self._log = parts.log
        self._reads = parts.reads
        self._link = parts.tools.link
        self._texts = TextKeeper(parts.tools.artifacts, parts.tools.executor, self._deliver)
        self._tasks = tasks
        self._tools = parts.tools
        self._actors: dict[str, Actor] = {}
        self._loading: dict[str, asyncio.Future[Actor]] = {}
        self._callers: Counter[str] = Counter()
        self._requests = Requests(parts.reads)
        self._snapshot: host.HostSnapshot | None = None
        self._output_waits = ""
        self._recovering = True
        self._held: list[host.News] | None = []
        """News that came before the runs they are about were opened."""
        self._idle = asyncio.Event()
        clock = Clock()
        self._slots = Slots(parts.max_workers, partial(self._tell, GoOn()))
        self._timers = Timers(clock, partial(self._tell, Due()))
        self._jobs = Jobs(
            parts.tools,
            parts.environment,
            own_variables=partial(_own_variables, parts),
            find=self._actors.get,
            spawn=lambda job, pump: self._spawn(pump.run(), f"output {job}"),
        )
        self.masking = self._jobs.masking
        self._around = Surroundings(
            log=parts.log,
            clock=clock,
            slots=self._slots,
            timers=self._timers,
            encode=parts.encode,
            perform=self._perform,
            reload=self._reload,
            settled=self._settled,
            spawn=lambda actor: self._spawn(actor.drain(), f"run {actor.run_id}"),
        )

    # For the rpc edge

    async def create(self, create: Create, request: RequestKey | None, render: Render) -> bytes:
        """Record a new run and start it. Raises DRAINING, DISK_LOW or QUEUE_FULL."""

        async def act() -> bytes:
            admit(self._log, draining=not self._slots.open, open_runs=len(self._actors))
            if self._output_waits:
                raise CrewdError(Reason.DISK_LOW, f"no new run is taken: {self._output_waits}")
            actor = self._add(RunState(Run(id=create.run_id, spec=create.spec)))
            return await actor.ask(create, request=request, render=render)

        return await self._requests.once(request, act)

    async def command(
        self, run_id: str, command: Command, request: RequestKey | None, render: Render
    ) -> bytes:
        """Carry out a person's command on a run. Raises RUN_NOT_FOUND, or what the run refuses."""

        async def act() -> bytes:
            check_disk(self._log, "nothing can be stored")
            with self._kept(run_id):
                actor = await self._actor(run_id)
                return await actor.ask(command, request=request, render=render)

        return await self._requests.once(request, act)

    async def drain(self, mode: DrainMode) -> int:
        """Start nothing new. WAIT returns when no worker runs; returns how many still do."""
        self._slots.open = False
        if mode is DrainMode.WAIT:
            while self._live_count():
                self._idle.clear()
                await self._idle.wait()
        return self._live_count()

    async def quiesce(self) -> None:
        """Return once every run has stored and answered what it was told."""
        while busy := [actor for actor in self._actors.values() if not actor.is_idle]:
            await asyncio.gather(*(actor.ask(GoOn()) for actor in busy))

    def info(self) -> RuntimeInfo:
        """Tell how things are, and look whether the host still answers, for who asks next."""
        self._link.probe()
        snapshot = self._snapshot
        return RuntimeInfo(
            host_status=_HOST_WORDS[self._link.status],
            host_message=self._link.status_message,
            host_version=snapshot.version if snapshot else "",
            host_protocol=snapshot.protocol if snapshot else 0,
            host_pid=snapshot.pid if snapshot else 0,
            running_workers=self._live_count(),
            max_workers=self._slots.cap,
            draining=not self._slots.open,
            paused=disk_trouble(self._log) or self._output_waits,
        )

    # Start and host

    async def recover(self) -> int:
        """Open every run that is not finished and go on with it; returns how many there are."""
        loaded = await self._reads.load_open()
        for rows in loaded:
            state = _state(rows)
            if state.is_settled:
                continue
            actor = self._add(state)
            actor.tell(GoOn())
        held, self._held = self._held or [], None
        for news in held:
            self.heard(news)
        self._spawn(clear_left(self._tools, self._reads), "left files")
        return len(loaded)

    def heard(self, news: host.News) -> None:
        """Take the host link's news. A job is judged only once all open runs are known."""
        if self._held is not None:
            self._held.append(news)
            return
        match news:
            case host.HostUp(snapshot=snapshot):
                self._host_up(snapshot)
            case host.HostDown(reason=reason):
                log.warning("host_down", reason=reason)
                self._output_waits = ""
                self._snapshot = None
                for actor in self._actors.values():
                    actor.tell(HostGone())
            case host.DiskFull(message=message):
                log.warning("host_disk_full", detail=message)
                self._output_waits = "the disk is nearly full, so workers' output waits for space"
            case host.DiskOk():
                log.info("host_disk_ok")
                self._output_waits = ""
            case _:
                self._jobs.heard(news)

    def close(self) -> None:
        self._timers.close()

    def _host_up(self, snapshot: host.HostSnapshot) -> None:
        log.info("host_up", epoch=snapshot.epoch, pid=snapshot.pid, jobs=len(snapshot.jobs))
        for stray in snapshot.strays:
            log.warning("stray_left", pid=stray.pid, command=stray.command)
        self._snapshot = snapshot
        for actor in list(self._actors.values()):
            self._jobs.introduce(actor, snapshot, recovery=self._recovering)
        self._recovering = False
        unknown = [job for job in snapshot.jobs if JobKey.of(job).run_id not in self._actors]
        for job in unknown:
            self._jobs.stop_orphan(job)
        ended = [*snapshot.exits, *snapshot.lost]
        self._link.forget([job for job in ended if JobKey.of(job).run_id not in self._actors])

    # Actors

    async def _actor(self, run_id: str) -> Actor:
        actor = self._actors.get(run_id)
        if actor is not None:
            return actor
        loading = self._loading.get(run_id)
        if loading is None:
            loading = asyncio.ensure_future(self._load(run_id))
            self._loading[run_id] = loading
            loading.add_done_callback(lambda _: self._loading.pop(run_id))
        return await asyncio.shield(loading)

    async def _load(self, run_id: str) -> Actor:
        """Only one load of a run at a time: rows read beside another actor would be old."""
        rows = await self._reads.load(run_id)
        if rows is None:
            raise CrewdError(Reason.RUN_NOT_FOUND, f"there is no run {run_id}", run_id=run_id)
        return self._add(_state(rows))

    def _add(self, state: RunState) -> Actor:
        actor = Actor(state, self._around)
        self._actors[actor.run_id] = actor
        if self._snapshot is not None:
            actor.tell(self._jobs.ready(actor.run_id, self._snapshot))
        return actor

    async def _deliver(self, run_id: str, stimulus: Stimulus) -> None:
        """Tell a run what it must hear though it has ended. Raises RUN_NOT_FOUND."""
        with self._kept(run_id):
            await (await self._actor(run_id)).ask(stimulus)

    @contextmanager
    def _kept(self, run_id: str) -> Generator[None]:
        """Drop no actor of this run: one that was only loaded would be gone before the command."""
        self._callers[run_id] += 1
        try:
            yield
        finally:
            self._callers -= Counter((run_id,))
            if (actor := self._actors.get(run_id)) is not None:
                actor.let_go()

    def _settled(self, actor: Actor) -> None:
        if self._actors.get(actor.run_id) is actor and actor.run_id not in self._callers:
            del self._actors[actor.run_id]
            self._timers.set(actor.run_id, None)
            self._slots.forget(actor.run_id)
            self._idle.set()

    def _reload(self, actor: Actor) -> None:
        self._jobs.drop(actor.run_id)
        self._spawn(self._restart(actor), f"reload {actor.run_id}")

    async def _restart(self, actor: Actor) -> None:
        await asyncio.sleep(actor.pause)
        rows = await self._reads.load(actor.run_id)
        if rows is None:
            del self._actors[actor.run_id]
            return
        state = _state(rows)
        try:
            snapshot = await self._link.list()
        except host.HostGoneError:
            actor.restart(state, [HostGone()])
            return
        jobs, exits = of_run(snapshot, actor.run_id)
        actor.restart(state, [self._jobs.ready(actor.run_id, snapshot, (jobs, exits))])
        self._jobs.replay(state, jobs, exits)

    # Doing

    def _perform(self, run_id: str, state: RunState, effects: Sequence[Effect]) -> None:
        self._jobs.perform(run_id, state, effects)
        for texts in texts_of(effects):
            self._spawn(self._texts.keep(run_id, texts), f"keep {run_id}")
        if not self._slots.open and not state.live:
            self._idle.set()

    def _tell(self, stimulus: Stimulus, run_id: str) -> None:
        actor = self._actors.get(run_id)
        if actor is not None:
            actor.tell(stimulus)

    def _live_count(self) -> int:
        return sum(len(actor.state.live) for actor in self._actors.values())

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._tasks.create_task(work, name=name)


def _own_variables(parts: Parts, job: JobKey) -> dict[str, str]:
    """Return what tells a worker where the daemon is and what it may say there."""
    return {
        **parts.own_variables,
        "CREWD_RUN_ID": job.run_id,
        "CREWD_TASK_ID": job.task_id,
        "CREWD_TASK_TOKEN": parts.tokens.issue(job),
    }


def _state(rows: LoadedRun) -> RunState:
    return RunState(
        rows.run, tasks=rows.tasks, attempts=rows.attempts, asks=rows.asks, outbox=rows.outbox
    )
