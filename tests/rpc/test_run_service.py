from __future__ import annotations

import asyncio

import grpc
from tests.rpc.world import AUTH, OPERATOR, World, refused

from crewd.core.events import RunFinished, RunStarted, TaskFinished
from crewd.core.model import RunStatus, TaskStatus
from crewd.v1 import run_service_pb2 as pb
from crewd.v1 import run_task_pb2, spec_pb2


def a_request(world: World, *tasks: spec_pb2.TaskSpec, **fields: object) -> pb.CreateRunRequest:
    spec = spec_pb2.RunSpec(
        goal="measure\nand report",
        tasks=tasks or [spec_pb2.TaskSpec(id="build", command=["true"])],
        workspace=spec_pb2.WorkspaceSpec(cwd=str(world.work)),
    )
    env = pb.ClientEnv(path="/usr/bin:relative:/bin")
    return pb.CreateRunRequest(spec=spec, env=env, **fields)  # type: ignore[arg-type]


async def test_a_created_run_is_there_when_the_call_returns(world: World) -> None:
    created = await world.runs.CreateRun(a_request(world), metadata=AUTH)
    read = await world.runs.GetRun(pb.GetRunRequest(run_id=created.run.id), metadata=AUTH)
    assert created.run.id.startswith("run_")
    assert (read.run.title, read.run.task_counts.queued) == ("measure", 1)
    assert read.run.workspace.cwd == str(world.work)
    assert read.run.limits.max_concurrent_workers == 4
