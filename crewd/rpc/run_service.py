"""RunService: its writes, and the table of all its methods."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from google.protobuf.message import Message

from crewd.core.model import Run
from crewd.core.spec import RunSpec
from crewd.core.state import RunState
from crewd.core.stimuli import (
    Cancel,
    CancelTasks,
    Command,
    Create,
    Delete,
    Resolve,
    Resume,
    Retry,
    Steer,
)
from crewd.core.words import TaskStatus
from crewd.rpc import convert, enums
from crewd.rpc.calls import (
    NOTE_BYTES,
    TEXT_BYTES,
    Context,
    Handler,
    actor_of,
    answered_before,
    bounded,
    request_key,
    required,
    unary,
)
from crewd.rpc.errors import invalid
from crewd.rpc.ports import Wiring
from crewd.rpc.read_output import OutputStream
from crewd.rpc.run_artifacts import RunArtifacts
from crewd.rpc.run_reads import RunReads
from crewd.rpc.run_streams import RunStreams
from crewd.rpc.spec import checked_spec
from crewd.rpc.staffing import Staffing
from crewd.runtime.ids import new_id
from crewd.v1 import run_service_pb2 as pb
from crewd.v1 import run_task_pb2 as task_pb
from crewd.v1 import task_pb2
from crewd.workers.transcript import delete_run, folder_of

NAME: Final = "crewd.v1.RunService"
TASK_IDS: Final = 1000
"""The most tasks one call may name."""


class RunService:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._staffing = Staffing(Path.home(), wiring.config_dir)
        self._others = (
            RunReads(wiring),
            RunArtifacts(wiring),
            RunStreams(wiring),
            OutputStream(wiring),
        )

    def handlers(self) -> dict[str, Handler]:
        own = {
            "CreateRun": unary(self._create_run, pb.CreateRunRequest.FromString),
            "CancelRun": unary(self._cancel_run, pb.CancelRunRequest.FromString),
            "CancelTasks": unary(self._cancel_tasks, task_pb.CancelTasksRequest.FromString),
            "ResumeRun": unary(self._resume_run, pb.ResumeRunRequest.FromString),
            "RetryTasks": unary(self._retry_tasks, task_pb.RetryTasksRequest.FromString),
            "ResolveTask": unary(self._resolve_task, task_pb.ResolveTaskRequest.FromString),
            "SteerTask": unary(self._steer_task, task_pb.SteerTaskRequest.FromString),
            "DeleteRun": unary(self._delete_run, pb.DeleteRunRequest.FromString),
        }
        for others in self._others:
            own |= others.handlers()
        return own

    async def _create_run(self, request: pb.CreateRunRequest, context: Context) -> bytes:
        key = request_key("CreateRun", request, request.request_id)
        if not request.validate_only:
            before = await answered_before(self._wiring.reads, key)
            if before is not None:
                return before
        actor = actor_of(self._wiring.auth, context)
        path = os.environ.get("PATH", os.defpath)
        spec, warnings = await asyncio.to_thread(
            checked_spec, request, daemon_path=path, staff=self._staffing
        )
        if request.validate_only:
            return pb.CreateRunResponse(
                run=convert.run(_would_be(spec, actor.name))
            ).SerializeToString()
        create = Create(
            run_id=new_id("run"),
            spec=spec,
            actor=actor,
            request_id=request.request_id,
            warnings=warnings,
        )
        return await self._wiring.supervisor.create(create, key, _with_run(pb.CreateRunResponse))

    async def _cancel_run(self, request: pb.CancelRunRequest, context: Context) -> bytes:
        actor = actor_of(self._wiring.auth, context)
        reason = bounded("reason", request.reason, NOTE_BYTES)
        return await self._command(
            request,
            Cancel(reason=reason, actor=actor, force=request.force),
            _with_run(pb.CancelRunResponse),
        )

    async def _cancel_tasks(self, request: task_pb.CancelTasksRequest, context: Context) -> bytes:
        actor = actor_of(self._wiring.auth, context)
        reason = bounded("reason", request.reason, NOTE_BYTES)
        task_ids = _task_ids(request.task_ids)
        if not task_ids:
            raise invalid("task_ids", "required: the tasks to cancel")
        return await self._command(
            request,
            CancelTasks(task_ids=task_ids, reason=reason, actor=actor),
            _with_run(task_pb.CancelTasksResponse),
        )

    async def _resume_run(self, request: pb.ResumeRunRequest, context: Context) -> bytes:
        actor = actor_of(self._wiring.auth, context)
        note = bounded("note", request.note, NOTE_BYTES)
        return await self._command(
            request, Resume(actor=actor, note=note), _with_run(pb.ResumeRunResponse)
        )

    async def _retry_tasks(self, request: task_pb.RetryTasksRequest, context: Context) -> bytes:
        retry = Retry(
            actor=actor_of(self._wiring.auth, context), task_ids=_task_ids(request.task_ids)
        )
        return await self._command(request, retry, _with_run(task_pb.RetryTasksResponse))

    async def _resolve_task(self, request: task_pb.ResolveTaskRequest, context: Context) -> bytes:
        resolution = enums.TO_RESOLUTION.get(request.resolution)
        if resolution is None:
            raise invalid("resolution", "must be accept, fail or skip")
        resolve = Resolve(
            task_id=required("task_id", request.task_id),
            resolution=resolution,
            note=bounded("note", request.note, NOTE_BYTES),
            actor=actor_of(self._wiring.auth, context),
        )

        def render(state: RunState) -> bytes:
            row, root = state.tasks[resolve.task_id], state.run.spec.project_root
            task = convert.task(row, project_root=root)
            return task_pb.ResolveTaskResponse(task=task).SerializeToString()

        return await self._command(request, resolve, render)

    async def _steer_task(self, request: task_pb.SteerTaskRequest, context: Context) -> bytes:
        required("text", request.text)
        steer = Steer(
            task_id=required("task_id", request.task_id),
            steer_id=new_id("steer"),
            text=bounded("text", request.text, TEXT_BYTES),
            actor=actor_of(self._wiring.auth, context),
        )
        sent = task_pb2.Steer(id=steer.steer_id, status=task_pb2.STEER_STATUS_QUEUED)
        response = task_pb.SteerTaskResponse(steer=sent).SerializeToString()
        return await self._command(request, steer, lambda _state: response)

    async def _delete_run(self, request: pb.DeleteRunRequest, context: Context) -> bytes:
        """Delete the rows first: files without a run are garbage, the reverse is a loss."""
        run_id = required("run_id", request.run_id)
        run = await self._wiring.reads.get_run(run_id)
        freed = 0 if run is None else await asyncio.to_thread(self._size_of, run_id)
        delete = Delete(actor=actor_of(self._wiring.auth, context), freed_bytes=freed)

        def render(state: RunState) -> bytes:
            return pb.DeleteRunResponse(
                run=convert.run(state.run), freed_bytes=freed
            ).SerializeToString()

        response = await self._command(request, delete, render)
        if run is not None:
            await asyncio.to_thread(delete_run, self._wiring.transcripts, run_id)
            await asyncio.to_thread(self._wiring.artifacts.delete_run, run_id)
        return response

    def _size_of(self, run_id: str) -> int:
        """Return how many bytes the files of a run take."""
        transcripts = folder_of(self._wiring.transcripts, run_id)
        return _size_of(transcripts) + self._wiring.artifacts.size_of(run_id)

    async def _command(
        self, request: _Write, command: Command, render: Callable[[RunState], bytes]
    ) -> bytes:
        name = request.DESCRIPTOR.name.removesuffix("Request")
        key = request_key(name, request, request.request_id)
        run_id = required("run_id", request.run_id)
        return await self._wiring.supervisor.command(run_id, command, key, render)


_Write = (
    pb.CancelRunRequest
    | pb.ResumeRunRequest
    | pb.DeleteRunRequest
    | task_pb.CancelTasksRequest
    | task_pb.RetryTasksRequest
    | task_pb.ResolveTaskRequest
    | task_pb.SteerTaskRequest
)
_RunResponse = (
    pb.CreateRunResponse
    | pb.CancelRunResponse
    | pb.ResumeRunResponse
    | task_pb.CancelTasksResponse
    | task_pb.RetryTasksResponse
)


def _with_run(response: type[_RunResponse]) -> Callable[[RunState], bytes]:
    """Return what renders a response whose only field is the run."""
    return partial(_render_run, response)


def _render_run(response: type[_RunResponse], state: RunState) -> bytes:
    message: Message = response(run=convert.run(state.run))
    return message.SerializeToString()


def _task_ids(task_ids: Sequence[str]) -> tuple[str, ...]:
    if len(task_ids) > TASK_IDS:
        raise invalid("task_ids", f"names {len(task_ids)} tasks; the most is {TASK_IDS}")
    return tuple(task_ids)


def _would_be(spec: RunSpec, user: str) -> Run:
    """Return the run as CreateRun would make it, without an id and without times."""
    return Run(
        id="",
        spec=replace(spec, tasks=()),
        title=spec.title,
        created_by=user,
        task_counts={TaskStatus.QUEUED: len(spec.tasks)},
    )


def _size_of(folder: os.PathLike[str]) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except FileNotFoundError:
        return 0
