"""The methods of the client by the names of the contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import crewd_client as crewd
from crewd_client import Change, Client
from crewd_client.json import from_json, to_json
from crewd_client.v1.ask_pb2 import Ask
from crewd_client.v1.ask_service_pb2 import WatchAsksRequest
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.run_stream_pb2 import WatchRunRequest, WatchRunsRequest
from tests.conformance.script import contract
from tests.conformance.watching import Watch

Json = Any
# A field that no version knows: number 999, a varint, 1.
UNKNOWN_FIELD = b"\xb8\x3e\x01"
_METHODS = contract()


def message_class(name: str) -> type[Message]:
    """Give a message of the contract by its name."""
    return GetMessageClass(Default().FindMessageTypeByName(f"crewd.v1.{name}"))


def request_of(method: str, data: Json, *, unknown_field: bool = False) -> Message:
    kind: type[Message] = GetMessageClass(_METHODS[method].input_type)
    request = from_json(data, kind)
    if unknown_field:
        request.MergeFromString(UNKNOWN_FIELD)
    return request


async def call(client: Client, method: str, request: Message, seconds: float | None) -> Json:
    return to_json(await _stub(client, method)(request, timeout=seconds))


async def stream(client: Client, method: str, request: Message) -> list[Json]:
    responses: AsyncIterator[Message] = _stub(client, method)(request)
    return [to_json(response) async for response in responses]


async def pages(client: Client, method: str, request: Any) -> list[Json]:  # noqa: ANN401
    return [to_json(item) async for item in _PAGES[method](client, request)]


def watch_run(client: Client, data: Json) -> Watch:
    request = from_json(data, WatchRunRequest)
    events = crewd.watch_run(
        client,
        request.run_id,
        request.after_sequence,
        stop_when_finished=request.stop_when_finished,
        kinds=request.kinds,
    )
    return Watch(events, to_json)


def watch_runs(client: Client, data: Json) -> Watch:
    request = from_json(data, WatchRunsRequest)
    return Watch(crewd.watch_runs(client, request.filter), _change)


def watch_asks(client: Client, data: Json) -> Watch:
    request = from_json(data, WatchAsksRequest)
    return Watch(crewd.watch_asks(client, request.filter), _change)


def _change(change: Change[Run] | Change[Ask]) -> Json:
    return {
        "items": [to_json(item) for item in change.items],
        "removed_ids": list(change.removed_ids),
        "complete": change.complete,
    }


def _stub(client: Client, method: str) -> Any:  # noqa: ANN401
    service, name = method.split("/")
    return getattr(getattr(client, _SERVICES[service]), name)


_SERVICES = {
    "RunService": "runs",
    "AskService": "asks",
    "WorkerService": "worker",
    "CatalogService": "catalog",
    "DaemonService": "daemon",
}

_PAGES: dict[str, Callable[[Client, Any], AsyncGenerator[Any, None]]] = {
    "RunService/ListRuns": lambda c, q: crewd.list_runs(c, q.filter, page_size=q.page_size),
    "RunService/ListTasks": lambda c, q: crewd.list_tasks(c, q.run_id, page_size=q.page_size),
    "RunService/ListEvents": lambda c, q: crewd.list_events(
        c,
        q.run_id,
        after_sequence=q.after_sequence,
        kinds=tuple(q.kinds),
        page_size=q.page_size,
    ),
    "RunService/ListArtifacts": lambda c, q: crewd.list_artifacts(
        c, q.run_id, task_id=q.task_id, kinds=q.kinds, page_size=q.page_size
    ),
    "AskService/ListAsks": lambda c, q: crewd.list_asks(c, q.filter, page_size=q.page_size),
    "CatalogService/ListAgents": lambda c, q: crewd.list_agents(c, q.cwd, page_size=q.page_size),
    "CatalogService/ListTeams": lambda c, q: crewd.list_teams(c, q.cwd, page_size=q.page_size),
    "CatalogService/ListWorkflows": lambda c, q: crewd.list_workflows(
        c, q.cwd, page_size=q.page_size
    ),
    "CatalogService/ListSkills": lambda c, q: crewd.list_skills(c, q.cwd, page_size=q.page_size),
}
