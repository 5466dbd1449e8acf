"""The unary reads of RunService."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crewd.core.model import Run, Task
from crewd.rpc import convert
from crewd.rpc.calls import Context, Handler, required, unary
from crewd.rpc.errors import run_not_found, task_not_found
from crewd.rpc.filters import run_filter
from crewd.rpc.pages import gather, place_of
from crewd.rpc.ports import Wiring
from crewd.rpc.run_cache import RunCache
from crewd.rpc.wire import ITEMS_TAG, repeated
from crewd.v1 import run_service_pb2, run_task_pb2


class RunReads:
    def __init__(self, wiring: Wiring) -> None:
        self._reads = wiring.reads
        self._runs = RunCache(wiring.reads)

    def handlers(self) -> dict[str, Handler]:
        return {
            "GetRun": unary(self._get_run, run_service_pb2.GetRunRequest.FromString),
            "ListRuns": unary(self._list_runs, run_service_pb2.ListRunsRequest.FromString),
            "ListTasks": unary(self._list_tasks, run_task_pb2.ListTasksRequest.FromString),
            "GetTask": unary(self._get_task, run_task_pb2.GetTaskRequest.FromString),
        }

    async def _get_run(self, request: run_service_pb2.GetRunRequest, _context: Context) -> bytes:
        run = await self._find(required("run_id", request.run_id))
        return run_service_pb2.GetRunResponse(run=convert.run(run)).SerializeToString()

    async def _list_runs(
        self, request: run_service_pb2.ListRunsRequest, _context: Context
    ) -> bytes:
        place = place_of(request, request)
        which = run_filter(request.filter)
        page = await gather(place, partial(self._runs.page, which), bytes, at_once=place.size)
        rest = run_service_pb2.ListRunsResponse(
            next_page_token=place.token(page.next), as_of_sequence=page.as_of_sequence
        )
        return repeated(ITEMS_TAG, page.items) + rest.SerializeToString()

    async def _list_tasks(self, request: run_task_pb2.ListTasksRequest, _context: Context) -> bytes:
        place = place_of(request, request)
        run = await self._find(required("run_id", request.run_id))
        page = await gather(place, partial(self._reads.list_tasks, run.id), _encode_task(run))
        rest = run_task_pb2.ListTasksResponse(
            next_page_token=place.token(page.next), as_of_sequence=page.as_of_sequence
        )
        return repeated(ITEMS_TAG, page.items) + rest.SerializeToString()

    async def _get_task(self, request: run_task_pb2.GetTaskRequest, _context: Context) -> bytes:
        run = await self._find(required("run_id", request.run_id))
        row = await self._reads.get_task(run.id, required("task_id", request.task_id))
        if row is None:
            raise task_not_found(run.id, request.task_id)
        task = convert.task(row, project_root=run.spec.project_root)
        attempts = await self._reads.list_attempts(run.id, row.id)
        task.attempts.extend(map(convert.attempt, attempts))
        task.model = attempts[-1].model if attempts else ""
        return run_task_pb2.GetTaskResponse(task=task).SerializeToString()

    async def _find(self, run_id: str) -> Run:
        run = await self._reads.get_run(run_id)
        if run is None:
            raise run_not_found(run_id)
        return run


def _encode_task(run: Run) -> Callable[[Task], bytes]:
    root = run.spec.project_root

    def encode(task: Task) -> bytes:
        return convert.task(task, project_root=root, texts=convert.BRIEF).SerializeToString()

    return encode
