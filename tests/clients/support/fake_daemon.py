"""A daemon for the client's tests: the services over a real socket, state in memory."""
# ruff: noqa: N802  # the methods are named as in the contract

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio

from crewd_client.locate import DaemonFile
from crewd_client.v1.artifact_pb2 import Artifact
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, ASK_STATUS_DECLINED, ASK_STATUS_OPEN, Ask
from crewd_client.v1.ask_service_pb2 import (
    AnswerAskRequest,
    AnswerAskResponse,
    GetAskRequest,
    GetAskResponse,
    ListAsksRequest,
    ListAsksResponse,
    WatchAsksRequest,
    WatchAsksResponse,
)
from crewd_client.v1.daemon_service_pb2 import GetServerInfoRequest, GetServerInfoResponse
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_artifact_pb2 import (
    ListArtifactsRequest,
    ListArtifactsResponse,
    ReadArtifactRequest,
    ReadArtifactResponse,
)
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_CANCELLED,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
    RUN_STATUS_RUNNING,
    Run,
    TaskCounts,
)
from crewd_client.v1.run_service_pb2 import (
    CancelRunRequest,
    CancelRunResponse,
    CreateRunRequest,
    CreateRunResponse,
    GetRunRequest,
    GetRunResponse,
    ListRunsRequest,
    ListRunsResponse,
)
from crewd_client.v1.run_stream_pb2 import (
    ListEventsRequest,
    ListEventsResponse,
    ReadOutputRequest,
    ReadOutputResponse,
    WatchRunRequest,
    WatchRunResponse,
)
from crewd_client.v1.run_task_pb2 import (
    GetTaskRequest,
    GetTaskResponse,
    ListTasksRequest,
    ListTasksResponse,
)
from crewd_client.v1.server_pb2 import ServerInfo
from crewd_client.v1.task_pb2 import Task
from tests.clients.support.wire import RefusedError, server_of

RUN = "run_aaaaaaaaaa"
ASK = "ask_bbbbbbbbbb"
TOKEN = "a-token"  # noqa: S105
OVER = {RUN_STATUS_COMPLETED, RUN_STATUS_FAILED, RUN_STATUS_CANCELLED}


@dataclass
class FakeDaemon:
    """Answers what it was told to; `emit` makes events, which watchers get at once."""

    state_dir: Path
    token: str = TOKEN
    socket: Path = field(init=False)
    store_id: str = "store-1"
    told_state_dir: str = ""
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    tasks: list[Task] = field(default_factory=list[Task])
    asks: dict[str, Ask] = field(default_factory=dict[str, Ask])
    events: list[Event] = field(default_factory=list[Event])
    output: bytes = b""
    artifacts: list[Artifact] = field(default_factory=list[Artifact])
    artifact_bytes: bytes = b""
    page_size: int = 2
    chunk: int = 7
    refusals: dict[str, list[RefusedError]] = field(default_factory=dict[str, list[RefusedError]])
    calls: list[tuple[str, Any, dict[str, str]]] = field(
        default_factory=list[tuple[str, Any, dict[str, str]]]
    )
    on_create: Callable[[Run], None] | None = None
    commands: list[Process] = field(default_factory=list[Process])

    def __post_init__(self) -> None:
        self.socket = self.state_dir / "crewd.sock"
        self._changed = asyncio.Condition()
        self._server: grpc.aio.Server | None = None
        self._draining = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await _end(self.commands)
        await self.stop()

    async def start(self) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self._draining = False
        self._server = server_of(self, self._note)
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()
        token_file = self.state_dir / "token"
        token_file.write_text(self.token)
        daemon = DaemonFile(
            1, "i", self.store_id, 1, "0", str(self.socket), str(token_file), str(self.state_dir)
        )
        (self.state_dir / "daemon.json").write_text(daemon.text())

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def drain(self) -> None:
        """Say goodbye to the watchers, then stop."""
        self._draining = True
        await self._wake()
        if self._server is not None:
            await self._server.stop(5)
            self._server = None

    def add_run(self, run: Run) -> Run:
        """Make the run known, with an id and a status if it has none."""
        run.id = run.id or RUN
        run.status = run.status or RUN_STATUS_RUNNING
        run.create_time.GetCurrentTime()
        self.runs[run.id] = run
        return run

    async def emit(self, event: Event, run_id: str = RUN) -> None:
        """Record an event of the run, and what it says about its status and its asks."""
        run = self.runs[run_id]
        event.kind = event.WhichOneof("payload") or ""
        event.sequence = (self.events[-1].sequence if self.events else 0) + 2
        event.run_sequence = run.last_run_sequence + 1
        event.run_id = run_id
        event.time.GetCurrentTime()
        run.last_sequence, run.last_run_sequence = event.sequence, event.run_sequence
        run.status = event.run_status or run.status
        if event.HasField("ask_opened"):
            self.asks[event.ask_opened.ask.id] = event.ask_opened.ask
        self.events.append(event)
        await self._wake()

    def told(self, method: str) -> dict[str, str]:
        """Give the metadata of the last call of a method."""
        return [metadata for name, _, metadata in self.calls if name == method][-1]

    async def called(self, method: str, count: int = 1) -> Any:  # noqa: ANN401
        """Wait for a call and give its request."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests(method)) >= count)
        return self.requests(method)[count - 1]

    def requests(self, method: str) -> list[Any]:
        return [request for name, request, _ in self.calls if name == method]

    def GetServerInfo(self, _: GetServerInfoRequest) -> GetServerInfoResponse:
        told = self.told_state_dir or str(self.state_dir)
        return GetServerInfoResponse(server=ServerInfo(version="0", state_dir=told))

    def CreateRun(self, request: CreateRunRequest) -> CreateRunResponse:
        if request.validate_only:
            counts = TaskCounts(queued=len(request.spec.tasks))
            return CreateRunResponse(run=Run(title="as it would be", task_counts=counts))
        run = self.add_run(Run(title=request.spec.title))
        if self.on_create is not None:
            self.on_create(run)
        return CreateRunResponse(run=run)

    def GetRun(self, request: GetRunRequest) -> GetRunResponse:
        if request.run_id not in self.runs:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND", "no such run")
        return GetRunResponse(run=self.runs[request.run_id])

    def ListRuns(self, request: ListRunsRequest) -> ListRunsResponse:
        cwd = request.filter.cwd
        runs = [run for run in self.runs.values() if not cwd or run.workspace.cwd == cwd]
        page, token = self._page(runs, request.page_token)
        return ListRunsResponse(runs=page, next_page_token=token)

    def ListTasks(self, request: ListTasksRequest) -> ListTasksResponse:
        page, token = self._page(self.tasks, request.page_token)
        return ListTasksResponse(tasks=page, next_page_token=token)

    def GetTask(self, request: GetTaskRequest) -> GetTaskResponse:
        known = {task.id: task for task in self.tasks}
        return GetTaskResponse(task=known.get(request.task_id))

    def ListEvents(self, request: ListEventsRequest) -> ListEventsResponse:
        page, token = self._page(self.events, request.page_token)
        return ListEventsResponse(events=page, next_page_token=token)

    def CancelRun(self, request: CancelRunRequest) -> CancelRunResponse:
        return CancelRunResponse(run=self.runs[request.run_id])

    def ListAsks(self, request: ListAsksRequest) -> ListAsksResponse:
        wanted = set(request.filter.statuses)
        found = [ask for ask in self.asks.values() if not wanted or ask.status in wanted]
        page, token = self._page(found, request.page_token)
        return ListAsksResponse(asks=page, next_page_token=token)

    def GetAsk(self, request: GetAskRequest) -> GetAskResponse:
        return GetAskResponse(ask=self.asks[request.ask_id])

    def AnswerAsk(self, request: AnswerAskRequest) -> AnswerAskResponse:
        ask = self.asks[request.ask_id]
        if ask.status != ASK_STATUS_OPEN:
            message = "the ask is settled"
            raise RefusedError(grpc.StatusCode.ABORTED, "ASK_SETTLED", message, details=[ask])
        ask.status = ASK_STATUS_DECLINED if request.decline else ASK_STATUS_ANSWERED
        return AnswerAskResponse(ask=ask)

    async def WatchRun(self, request: WatchRunRequest) -> AsyncIterator[WatchRunResponse]:
        if request.store_id not in {"", self.store_id}:
            raise RefusedError(grpc.StatusCode.OUT_OF_RANGE, "CURSOR_EXPIRED", "another store")
        yield WatchRunResponse(store_id=self.store_id)
        after = request.after_sequence
        while True:
            found = [event for event in self.events if event.sequence > after]
            for event in found:
                yield WatchRunResponse(events=[event])
                after = event.sequence
            if self._draining:
                response = WatchRunResponse()
                response.draining.restart_expected = True
                yield response
                return
            run = self.runs[request.run_id]
            told = after >= run.last_sequence
            if told and run.status in OVER and request.stop_when_finished:
                return
            if told:
                await self._news(len(self.events))

    async def WatchAsks(self, request: WatchAsksRequest) -> AsyncIterator[WatchAsksResponse]:
        del request
        for ask in list(self.asks.values()):
            yield WatchAsksResponse(asks=[ask])
        yield WatchAsksResponse(synced=True)
        async with self._changed:
            await self._changed.wait_for(lambda: self._draining)
        response = WatchAsksResponse()
        response.draining.SetInParent()
        yield response

    async def ReadOutput(self, request: ReadOutputRequest) -> AsyncIterator[ReadOutputResponse]:
        size = len(self.output)
        offset = max(size + request.offset, 0) if request.offset < 0 else request.offset
        while offset < size:
            data = self.output[offset : offset + self.chunk]
            yield ReadOutputResponse(
                attempt=1, offset=offset, data=data, next_offset=offset + len(data)
            )
            offset += len(data)
        yield ReadOutputResponse(attempt=1, offset=size, next_offset=size, eof=True)

    def ListArtifacts(self, request: ListArtifactsRequest) -> ListArtifactsResponse:
        page, token = self._page(self.artifacts, request.page_token)
        return ListArtifactsResponse(artifacts=page, next_page_token=token)

    async def ReadArtifact(
        self, request: ReadArtifactRequest
    ) -> AsyncIterator[ReadArtifactResponse]:
        found = [a for a in self.artifacts if request.artifact_id == a.id or request.name == a.name]
        if not found:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "ARTIFACT_NOT_FOUND", "no such artifact")
        data, offset = self.artifact_bytes, request.offset
        end = min(offset + request.limit, len(data)) if request.limit else len(data)
        told: Artifact | None = found[-1]
        while True:
            part = data[offset : min(offset + self.chunk, end)]
            offset += len(part)
            yield ReadArtifactResponse(
                artifact=told,
                offset=offset - len(part),
                data=part,
                next_offset=offset,
                eof=offset == len(data),
            )
            told = None
            if offset >= end:
                return

    def _page(self, items: list[Any], token: str) -> tuple[list[Any], str]:
        start = int(token or 0)
        end = start + self.page_size
        return items[start:end], str(end) if end < len(items) else ""

    async def _note(self, method: str, request: object, metadata: dict[str, str]) -> None:
        self.calls.append((method, request, metadata))
        await self._wake()
        if metadata.get("authorization") != f"Bearer {self.token}":
            raise RefusedError(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID", "not this token")
        if self.refusals.get(method):
            raise self.refusals[method].pop(0)

    async def _news(self, seen: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.events) > seen or self._draining)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _end(commands: list[Process]) -> None:
    """See to it that no command outlives the daemon that it was started against."""
    for command in commands:
        if command.returncode is None:
            command.kill()
            await command.wait()
