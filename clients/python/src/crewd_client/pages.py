"""Every item of a list, page after page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from crewd_client.client import Client
from crewd_client.v1.artifact_pb2 import Artifact, ArtifactKind
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.ask_service_pb2 import AskFilter, ListAsksRequest
from crewd_client.v1.catalog_pb2 import Agent, Skill, Team, Workflow
from crewd_client.v1.catalog_service_pb2 import (
    ListAgentsRequest,
    ListSkillsRequest,
    ListTeamsRequest,
    ListWorkflowsRequest,
)
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_artifact_pb2 import ListArtifactsRequest
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


async def list_artifacts(
    client: Client,
    run_id: str,
    *,
    task_id: str = "",
    kinds: Sequence[ArtifactKind.ValueType] = (),
    page_size: int = 0,
) -> AsyncGenerator[Artifact, None]:
    """Give what a run keeps in the order it was recorded."""
    request = ListArtifactsRequest(run_id=run_id, task_id=task_id, kinds=kinds, page_size=page_size)
    async for page in _pages(client.runs.ListArtifacts, request):
        for artifact in page.artifacts:
            yield artifact


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


async def list_agents(
    client: Client, cwd: str = "", *, page_size: int = 0
) -> AsyncGenerator[Agent, None]:
    """Give the agents there are for a directory, by name, without their long texts."""
    request = ListAgentsRequest(cwd=cwd, page_size=page_size)
    async for page in _pages(client.catalog.ListAgents, request):
        for agent in page.agents:
            yield agent


async def list_teams(
    client: Client, cwd: str = "", *, page_size: int = 0
) -> AsyncGenerator[Team, None]:
    """Give the teams there are for a directory, by name, without their long texts."""
    request = ListTeamsRequest(cwd=cwd, page_size=page_size)
    async for page in _pages(client.catalog.ListTeams, request):
        for team in page.teams:
            yield team


async def list_workflows(
    client: Client, cwd: str = "", *, page_size: int = 0
) -> AsyncGenerator[Workflow, None]:
    """Give the workflows there are for a directory, by name, without their long texts."""
    request = ListWorkflowsRequest(cwd=cwd, page_size=page_size)
    async for page in _pages(client.catalog.ListWorkflows, request):
        for workflow in page.workflows:
            yield workflow


async def list_skills(
    client: Client, cwd: str = "", *, page_size: int = 0
) -> AsyncGenerator[Skill, None]:
    """Give the skills there are for a directory, by name, without their long texts."""
    request = ListSkillsRequest(cwd=cwd, page_size=page_size)
    async for page in _pages(client.catalog.ListSkills, request):
        for skill in page.skills:
            yield skill


async def _pages(call: Callable[[Q], Awaitable[R]], request: Q) -> AsyncGenerator[R, None]:
    while True:
        page = await call(request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
