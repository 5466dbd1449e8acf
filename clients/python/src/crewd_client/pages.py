"""Every item of a list, page after page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar

from crewd_client.client import Client
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.ask_service_pb2 import AskFilter, ListAsksRequest
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_pb2 import Run, RunFilter
from crewd_client.v1.run_service_pb2 import ListRunsRequest
from crewd_client.v1.run_stream_pb2 import ListEventsRequest
from crewd_client.v1.run_task_pb2 import ListTasksRequest
from crewd_client.v1.task_pb2 import Task


class _Request(Protocol):
    page_token: str


class _Response(Protocol):
    @property
    def next_page_token(self) -> str: ...


Q = TypeVar("Q", bound=_Request)
R = TypeVar("R", bound=_Response)


async def list_runs(
    client: Client, run_filter: RunFilter | None = None, *, page_size: int = 0
) -> AsyncGenerator[Run, None]:
    """Give the matching runs, unfinished ones first, then newest first."""
    request = ListRunsRequest(filter=run_filter, page_size=page_size)
    async for page in _pages(client.runs.ListRuns, request):
        for run in page.runs:
            yield run


async def list_tasks(
    client: Client, run_id: str, *, page_size: int = 0
) -> AsyncGenerator[Task, None]:
    """Give the tasks of a run in the order they were added."""
    request = ListTasksRequest(run_id=run_id, page_size=page_size)
    async for page in _pages(client.runs.ListTasks, request):
        for task in page.tasks:
            yield task


async def list_events(
    client: Client,
    run_id: str,
    *,
    after_sequence: int = 0,
    kinds: tuple[str, ...] = (),
    page_size: int = 0,
) -> AsyncGenerator[Event, None]:
    """Give the events of a run that are recorded now, oldest first."""
    request = ListEventsRequest(
        run_id=run_id, after_sequence=after_sequence, kinds=kinds, page_size=page_size
    )
    async for page in _pages(client.runs.ListEvents, request):
        for event in page.events:
            yield event


async def list_asks(
    client: Client, ask_filter: AskFilter | None = None, *, page_size: int = 0
) -> AsyncGenerator[Ask, None]:
    """Give the matching asks, open ones first, then newest first."""
    request = ListAsksRequest(filter=ask_filter, page_size=page_size)
    async for page in _pages(client.asks.ListAsks, request):
        for ask in page.asks:
            yield ask


async def _pages(call: Callable[[Q], Awaitable[R]], request: Q) -> AsyncGenerator[R, None]:
    while True:
        page = await call(request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
