"""An edge in this process: the real store, feed and server; runs do what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from google.rpc import (  # pyright: ignore[reportMissingTypeStubs]
    error_details_pb2,
    status_pb2,
)

from crewd.core.apply import apply
from crewd.core.decide import decide
from crewd.core.errors import CrewdError, Reason
from crewd.core.events import CHATTER, Event, Recorded
from crewd.core.marks import Mark
from crewd.core.model import DAEMON, Actor, Ask, AskOption, Run
from crewd.core.redaction.masking import Masking
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.state import RunState
from crewd.core.stimuli import Command, Create
from crewd.core.turn import Turn
from crewd.core.units import Instant
from crewd.core.words import ActorKind
from crewd.origin import Origin
from crewd.rpc.auth import Auth
from crewd.rpc.encode import encode_event
from crewd.rpc.errors import DETAILS_KEY
from crewd.rpc.ports import Identity, Wiring
from crewd.rpc.server import Server
from crewd.runtime.actor import Render, RequestKey
from crewd.runtime.feed import Feed
from crewd.runtime.tokens import TaskTokens
from crewd.store import ArtifactFiles, Entry, Log, Reads, Request
from crewd.v1.ask_service_pb2_grpc import AskServiceStub
from crewd.v1.catalog_service_pb2_grpc import CatalogServiceStub
from crewd.v1.daemon_service_pb2_grpc import DaemonServiceStub
from crewd.v1.run_service_pb2_grpc import RunServiceStub
from crewd.v1.worker_service_pb2_grpc import WorkerServiceStub
from crewd.workers.host_link import HostGoneError, HostSnapshot

if TYPE_CHECKING:
    from crewd.v1.ask_service_pb2_grpc import AskServiceAsyncStub
    from crewd.v1.catalog_service_pb2_grpc import CatalogServiceAsyncStub
    from crewd.v1.daemon_service_pb2_grpc import DaemonServiceAsyncStub
    from crewd.v1.run_service_pb2_grpc import RunServiceAsyncStub
    from crewd.v1.worker_service_pb2_grpc import WorkerServiceAsyncStub

TOKEN = "secret-of-the-operator"  # noqa: S105 - of a test
TASK_TOKENS = TaskTokens(b"the key of a test")
AUTH = (("authorization", f"Bearer {TOKEN}"), ("x-crewd-client", "test/1"))
PATIENCE = 10.0
"""Longer than anything here takes."""

OPERATOR = Actor(ActorKind.OPERATOR, "ada")
BEGIN = Instant(1_750_000_000_000_000)


@dataclass(slots=True)
class Info:
    host_status: str = "ready"
    host_message: str = ""
    host_version: str = "0.1.0"
    host_protocol: int = 1
    host_pid: int = 4242
    running_workers: int = 3
    max_workers: int = 16
    paused: str = ""
    draining: bool = False


class ScriptedSupervisor:
    """Decides and stores like the real one, and starts nothing."""

    def __init__(self, log: Log, reads: Reads) -> None:
        self.told = Info()
        self.states: dict[str, RunState] = {}
        self._log = log
        self._reads = reads
        self._now = BEGIN

    def info(self) -> Info:
        return self.told

    def masking(self, _job: object) -> Masking:
        return Masking()

    async def create(self, create: Create, request: RequestKey | None, render: Render) -> bytes:
        state = RunState(Run(id=create.run_id, spec=create.spec))
        self.states[create.run_id] = state
        return await self._carry_out(state, create, request, render)

    async def command(
        self, run_id: str, command: Command, request: RequestKey | None, render: Render
    ) -> bytes:
        known = await self._reads.find_request(request.id) if request else None
        if known is not None:
            return known.response
        if run_id not in self.states:
            raise CrewdError(Reason.RUN_NOT_FOUND, f"there is no run {run_id}", run_id=run_id)
        return await self._carry_out(self.states[run_id], command, request, render)

    async def record(self, run_id: str, *events: Event, by: Actor = DAEMON) -> int:
        """Have this happen to the run; return the last sequence."""
        state = self.states[run_id]
        turn = Turn(state, self._tick(), by)
        for event in events:
            turn.tell(event)
        return await self._append(state, turn.decision().events)

    async def note(self, run_id: str, mark: Mark) -> None:
        """Have rows of the run change without an event."""
        state = self.states[run_id]
        apply(state, mark, self._tick())
        await self._append(state, ())

    async def _carry_out(
        self, state: RunState, command: Command, request: RequestKey | None, render: Render
    ) -> bytes:
        decision = decide(state, command, self._tick())
        response = render(state)
        stored = [] if request is None else [_request(state.run.id, request, response, self._now)]
        await self._append(state, decision.events, stored)
        return response

    async def _append(
        self, state: RunState, events: Sequence[Recorded], requests: Sequence[Request] = ()
    ) -> int:
        first = self._log.take_sequences(len(events))
        entries: list[Entry] = []
        for sequence, recorded in enumerate(events, first):
            kind, data = encode_event(recorded, state, sequence)
            entries.append(
                Entry(
                    sequence=sequence,
                    run_sequence=recorded.run_sequence,
                    kind=kind,
                    chatter=isinstance(recorded.event, CHATTER),
                    data=data,
                )
            )
        last = first + len(events) - 1 if events else state.run.last_sequence
        await self._log.append(state.run.id, entries, state.take_changes(last), requests)
        return last

    def _tick(self) -> Instant:
        self._now = Instant(self._now + 1000)
        return self._now


class ScriptedHost:
    """Has what the test says; None: it does not answer."""

    def __init__(self) -> None:
        self.snapshot: HostSnapshot | None = HostSnapshot(
            pid=4242,
            version="0.1.0",
            protocol=1,
            epoch="epoch",
            boot_id="boot",
            jobs={},
            exits={},
            lost={},
            strays=(),
        )

    async def list(self) -> HostSnapshot:
        if self.snapshot is None:
            raise HostGoneError
        return self.snapshot


def _request(run_id: str, key: RequestKey, response: bytes, now: Instant) -> Request:
    return Request(
        id=key.id, run_id=run_id, method=key.method, digest=key.digest, response=response, time=now
    )


def an_ask(ask_id: str, run_id: str) -> Ask:
    """Return a question of the task `build`, answered by a choice or by words."""
    options = (AskOption(id="a", label="left"), AskOption(id="b", label="right"))
    return Ask(
        id=ask_id,
        run_id=run_id,
        task_id="build",
        attempt=1,
        question="which?",
        options=options,
        create_time=BEGIN,
    )


@dataclass(slots=True)
class World:
    """The edge, and one client that has the token."""

    folder: Path
    log: Log
    reads: Reads
    feed: Feed
    supervisor: ScriptedSupervisor
    host: ScriptedHost
    wiring: Wiring
    server: Server
    drains: list[bool] = field(default_factory=list[bool])
    channels: list[grpc.aio.Channel] = field(default_factory=list[grpc.aio.Channel])

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def channel(self) -> grpc.aio.Channel:
        """Return a new connection."""
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
        opened = grpc.aio.insecure_channel(f"unix:{self.wiring.identity.socket}", options)
        self.channels.append(opened)
        return opened

    @property
    def runs(self) -> RunServiceAsyncStub:
        return RunServiceStub(self.channel())

    @property
    def asks(self) -> AskServiceAsyncStub:
        return AskServiceStub(self.channel())

    @property
    def daemon(self) -> DaemonServiceAsyncStub:
        return DaemonServiceStub(self.channel())

    @property
    def catalog(self) -> CatalogServiceAsyncStub:
        return CatalogServiceStub(self.channel())

    @property
    def workers(self) -> WorkerServiceAsyncStub:
        return WorkerServiceStub(self.channel())

    async def create(self, run_id: str, *task_ids: str, goal: str = "measure") -> RunState:
        """Have a run, as if somebody had created it."""
        cwd = str(self.work)
        tasks = tuple(
            TaskSpec(id=i, title=i, command=("true",), executable="/usr/bin/true", cwd=cwd)
            for i in task_ids or ("build",)
        )
        spec = RunSpec(goal=goal, title=goal[:200], cwd=cwd, tasks=tasks)
        create = Create(run_id=run_id, spec=spec, actor=OPERATOR)
        await self.supervisor.create(create, None, lambda _state: b"")
        return self.supervisor.states[run_id]


@dataclass(frozen=True, slots=True)
class Refused:
    """How a call was refused, as a client sees it."""

    code: grpc.StatusCode
    message: str
    status: status_pb2.Status
    info: error_details_pb2.ErrorInfo

    @property
    def reason(self) -> str:
        return str(self.info.reason)

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.info.metadata)

    @property
    def fields(self) -> list[str]:
        """The fields that the request should not have had so."""
        bad = error_details_pb2.BadRequest()
        return [v.field for d in self.status.details if d.Unpack(bad) for v in bad.field_violations]


async def refused(call: Awaitable[object]) -> Refused:
    """Return the refusal of a call that must not succeed."""
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await call
    except grpc.aio.AioRpcError as error:
        return refusal_of(error)
    raise AssertionError(answer)


def refusal_of(error: grpc.aio.AioRpcError) -> Refused:
    details = dict(error.trailing_metadata())[DETAILS_KEY]
    assert isinstance(details, bytes)
    status = status_pb2.Status.FromString(details)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert status.code == error.code().value[0]
    return Refused(error.code(), error.details() or "", status, info)


def _fatal(error: BaseException) -> None:
    raise error


@asynccontextmanager
async def a_world(folder: Path, *, heartbeat_seconds: float = 15.0) -> AsyncGenerator[World]:
    """Serve at a socket in the folder until the end."""
    (folder / "work").mkdir()
    feed = Feed()
    log = Log(
        folder / "crewd.db", on_commit=feed.publish, on_state=print, on_fatal=_fatal, reserve=0
    )
    reads = Reads(folder / "crewd.db")
    supervisor = ScriptedSupervisor(log, reads)
    host = ScriptedHost()
    drains: list[bool] = []

    async def drain(*, wait: bool) -> int:
        drains.append(wait)
        supervisor.told.draining = True
        return supervisor.told.running_workers

    identity = Identity(
        version="0.1.0",
        instance_id="instance_1",
        store_id=log.store_id,
        schema_version=log.schema_version,
        state_dir=folder,
        socket=folder / "s" / "crewd.sock",
        start_time=BEGIN,
        origin=Origin(),
    )
    wiring = Wiring(
        supervisor=supervisor,
        host=host,
        drain=drain,
        reads=reads,
        feed=feed,
        auth=Auth(TOKEN, TASK_TOKENS, lambda: TOKEN),
        identity=identity,
        transcripts=folder / "transcripts",
        artifacts=ArtifactFiles(folder / "artifacts", reserve=0),
        config_dir=folder / "config",
        heartbeat_seconds=heartbeat_seconds,
    )
    server = Server(wiring)
    await server.start()
    await server.set_serving(serving=True)
    world = World(folder, log, reads, feed, supervisor, host, wiring, server, drains)
    try:
        yield world
    finally:
        for channel in world.channels:
            await channel.close()
        await server.stop("the test is over", restart_expected=False, grace_seconds=0)
        await reads.close()
        await log.close()
