"""A client as a person at a desk uses it: submit, wait for something, look at it, answer."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from google.protobuf.duration_pb2 import Duration

from crewd_client import (
    Client,
    list_asks,
    list_events,
    list_runs,
    list_tasks,
    read_output,
    watch_run,
)
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN, Ask
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest, AskFilter
from crewd_client.v1.attempt_pb2 import Attempt
from crewd_client.v1.daemon_service_pb2 import GetServerInfoRequest
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.run_service_pb2 import (
    CancelRunRequest,
    ClientEnv,
    CreateRunRequest,
    GetRunRequest,
)
from crewd_client.v1.run_stream_pb2 import OutputStream, ReadOutputRequest
from crewd_client.v1.run_task_pb2 import GetTaskRequest, SteerTaskRequest
from crewd_client.v1.server_pb2 import ServerInfo
from crewd_client.v1.spec_pb2 import (
    FailureMode,
    RetryPolicy,
    RunLimits,
    RunSpec,
    TaskSpec,
    WorkspaceSpec,
)
from crewd_client.v1.task_pb2 import Task

WORKERS = Path(__file__).parent / "workers"
PATIENCE = 90.0


class TaskFields(TypedDict, total=False):
    """What a test may say of a task beside its command."""

    adapter: str
    cwd: str
    depends_on: list[str]
    env: dict[str, str]


class RunFields(TypedDict, total=False):
    """What a test may say of a run beside its tasks."""

    goal: str
    failure_mode: FailureMode.ValueType
    limits: RunLimits
    retry: RetryPolicy


def worker(task_id: str, *steps: str, **fields: Unpack[TaskFields]) -> TaskSpec:
    """Describe a jsonl task that does what `workers/worker.py` calls these steps."""
    task = plain(task_id, *steps, **fields)
    task.adapter = "jsonl"
    return task


def plain(task_id: str, *steps: str, **fields: Unpack[TaskFields]) -> TaskSpec:
    """Describe a command task that does these steps."""
    return script(task_id, "worker", *steps, **fields)


def script(task_id: str, name: str, *arguments: str, **fields: Unpack[TaskFields]) -> TaskSpec:
    command = [sys.executable, "-I", "-S", str(WORKERS / f"{name}.py"), *arguments]
    return TaskSpec(id=task_id, command=command, **fields)


def shell(task_id: str, line: str, **fields: Unpack[TaskFields]) -> TaskSpec:
    return TaskSpec(id=task_id, command=["sh", "-c", line], **fields)


def retries(attempts: int) -> RetryPolicy:
    """Try again so often, and at once."""
    soon = Duration()
    soon.FromTimedelta(timedelta(milliseconds=10))
    return RetryPolicy(max_attempts=attempts, backoff=soon, max_backoff=soon)


class Desk:
    def __init__(self, client: Client, root: Path) -> None:
        self.client = client
        self.root = root

    def request(
        self, *tasks: TaskSpec, request_id: str = "", **spec: Unpack[RunFields]
    ) -> CreateRunRequest:
        return CreateRunRequest(
            request_id=request_id,
            spec=RunSpec(**spec, tasks=tasks, workspace=WorkspaceSpec(cwd=str(self.root))),
            env=ClientEnv(path="/usr/bin:/bin", vars={"BOOK": str(self.root / "book")}),
        )

    async def submit(
        self, *tasks: TaskSpec, request_id: str = "", **spec: Unpack[RunFields]
    ) -> str:
        request = self.request(*tasks, request_id=request_id, **spec)
        created = await self.client.runs.CreateRun(request)
        return created.run.id

    async def run(self, run_id: str) -> Run:
        return (await self.client.runs.GetRun(GetRunRequest(run_id=run_id))).run

    def runs(self) -> AsyncGenerator[Run, None]:
        return list_runs(self.client)

    async def ended(self, run_id: str) -> Run:
        """Wait for the end of the run."""
        async with asyncio.timeout(PATIENCE):
            async for _ in watch_run(self.client, run_id):
                pass
        return await self.run(run_id)

    async def happened(
        self, run_id: str, kind: str, task_id: str = "", *, times: int = 1, attempt: int = 0
    ) -> Event:
        """Wait for an event of this kind and return it."""
        async with asyncio.timeout(PATIENCE):
            async for event in watch_run(self.client, run_id):
                of_task = not task_id or event.task_id == task_id
                of_attempt = not attempt or event.attempt == attempt
                times -= event.kind == kind and of_task and of_attempt
                if times == 0:
                    return event
        raise AssertionError(f"{run_id} has ended without {kind}")

    async def events(self, run_id: str) -> list[Event]:
        return [event async for event in list_events(self.client, run_id)]

    async def counts(self, run_id: str) -> Counter[str]:
        """Return how many events of each kind there are."""
        return Counter(event.kind for event in await self.events(run_id))

    async def tasks(self, run_id: str) -> dict[str, Task]:
        return {task.id: task async for task in list_tasks(self.client, run_id)}

    async def task(self, run_id: str, task_id: str) -> Task:
        request = GetTaskRequest(run_id=run_id, task_id=task_id)
        return (await self.client.runs.GetTask(request)).task

    async def attempt(self, run_id: str, task_id: str) -> Attempt:
        """Return the latest attempt."""
        return max((await self.task(run_id, task_id)).attempts, key=lambda a: a.number)

    async def output(
        self,
        run_id: str,
        task_id: str,
        stream: OutputStream.ValueType = OutputStream.OUTPUT_STREAM_STDOUT,
    ) -> bytes:
        request = ReadOutputRequest(run_id=run_id, task_id=task_id, stream=stream)
        return b"".join([part.data async for part in read_output(self.client, request)])

    async def open_asks(self, run_id: str = "") -> list[Ask]:
        wanted = AskFilter(run_id=run_id, statuses=[ASK_STATUS_OPEN])
        return [ask async for ask in list_asks(self.client, wanted)]

    async def asks(self, run_id: str) -> list[Ask]:
        return [ask async for ask in list_asks(self.client, AskFilter(run_id=run_id))]

    async def asked(self, run_id: str, task_id: str = "") -> Ask:
        """Wait for a question and return it."""
        return (await self.happened(run_id, "ask_opened", task_id)).ask_opened.ask

    async def answer(self, ask_id: str, text: str) -> Ask:
        return await self.answer_as("", ask_id, text)

    async def answer_as(self, request_id: str, ask_id: str, text: str) -> Ask:
        request = AnswerAskRequest(request_id=request_id, ask_id=ask_id, text=text)
        return (await self.client.asks.AnswerAsk(request)).ask

    async def steer(self, run_id: str, task_id: str, text: str) -> None:
        request = SteerTaskRequest(run_id=run_id, task_id=task_id, text=text)
        await self.client.runs.SteerTask(request)

    async def cancel(self, run_id: str, *, force: bool = False) -> Run:
        request = CancelRunRequest(run_id=run_id, force=force)
        return (await self.client.runs.CancelRun(request)).run

    async def server(self) -> ServerInfo:
        return (await self.client.daemon.GetServerInfo(GetServerInfoRequest())).server

    def booked(self, task_id: str) -> list[list[str]]:
        """Return what the workers of a task wrote of themselves: lines of a pid and words."""
        log = self.root / "book" / f"{task_id}.log"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    def heard(self, task_id: str, kind: str) -> list[str]:
        """Return the ids of what the workers of a task were told, in order."""
        return [line[3] for line in self.booked(task_id) if line[1:3] == ["heard", kind]]

    def never_twice(self) -> bool:
        """Tell whether no two workers of one task ever lived at the same time."""
        logs = (self.root / "book").glob("*.log")
        return not any(" twice\n" in log.read_text() for log in logs)
