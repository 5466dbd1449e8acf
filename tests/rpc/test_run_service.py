from __future__ import annotations

import grpc
import pytest

from crewd.core.events import (
    AttemptStarting,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskRetryScheduled,
)
from crewd.core.units import Instant
from crewd.core.words import RunStatus, TaskStatus
from crewd.v1 import run_service_pb2 as pb
from crewd.v1 import run_task_pb2 as task_pb
from crewd.v1 import task_pb2
from tests.rpc.requests import a_request, a_task
from tests.rpc.world import AUTH, World, refused

RUN = "run_aaaaaaaaaa"


async def test_a_created_run_is_there_when_the_call_returns(world: World) -> None:
    created = await world.runs.CreateRun(a_request(world.work), metadata=AUTH)
    read = await world.runs.GetRun(pb.GetRunRequest(run_id=created.run.id), metadata=AUTH)
    assert created.run.id.startswith("run_")
    assert (read.run.title, read.run.task_counts.queued) == ("measure", 1)
    assert read.run.workspace.cwd == str(world.work)
    assert read.run.limits.max_concurrent_workers == 4


async def test_the_same_request_again_returns_what_the_first_did(world: World) -> None:
    request = a_request(world.work, request_id="r1")
    first = await world.runs.CreateRun(request, metadata=AUTH)
    world.work.rmdir()
    again = await world.runs.CreateRun(request, metadata=AUTH)
    other = a_request(world.work, a_task("test"), request_id="r1")
    got = await refused(world.runs.CreateRun(other, metadata=AUTH))
    listed = await world.runs.ListRuns(pb.ListRunsRequest(), metadata=AUTH)
    assert again == first
    assert (got.code, got.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert got.metadata["run_id"] == first.run.id
    assert [run.id for run in listed.runs] == [first.run.id]


async def test_a_request_id_may_have_64_characters(world: World) -> None:
    request = a_request(world.work, request_id="r" * 65)
    got = await refused(world.runs.CreateRun(request, metadata=AUTH))
    assert got.reason == "REQUEST_TOO_LARGE"
    assert got.metadata == {"field": "request_id", "limit": "64"}


async def test_a_dry_run_shows_the_run_and_stores_nothing(world: World) -> None:
    request = a_request(world.work, request_id="r1", validate_only=True)
    shown = await world.runs.CreateRun(request, metadata=AUTH)
    listed = await world.runs.ListRuns(pb.ListRunsRequest(), metadata=AUTH)
    assert (shown.run.id, shown.run.title, shown.run.status) == ("", "measure", 1)
    assert (shown.run.task_counts.queued, len(listed.runs)) == (1, 0)


async def test_a_dry_run_is_refused_like_a_real_one(world: World) -> None:
    request = a_request(world.work, a_task("build", command="no-such-program"), validate_only=True)
    got = await refused(world.runs.CreateRun(request, metadata=AUTH))
    assert (got.code, got.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "WORKER_NOT_FOUND")


async def test_commands_return_the_run_after_the_change(world: World) -> None:
    await world.create(RUN, "build", "test")
    tasks = task_pb.CancelTasksRequest(run_id=RUN, task_ids=["test"], reason="not now")
    one = await world.runs.CancelTasks(tasks, metadata=AUTH)
    cancel = pb.CancelRunRequest(run_id=RUN, reason="enough", request_id="c1")
    cancelled = await world.runs.CancelRun(cancel, metadata=AUTH)
    resumed = await world.runs.ResumeRun(pb.ResumeRunRequest(run_id=RUN), metadata=AUTH)
    retried = await refused(
        world.runs.RetryTasks(
            task_pb.RetryTasksRequest(run_id=RUN, task_ids=["nothing"]), metadata=AUTH
        )
    )
    assert one.run.task_counts.cancelled == 1
    assert cancelled.run.status in {5, 8}
    assert resumed.run.resume_count == 1
    assert retried.reason == "TASK_NOT_FOUND"


async def test_a_resolved_task_is_returned(world: World) -> None:
    await world.create(RUN, "build", "test")
    await world.supervisor.record(
        RUN,
        RunStarted(),
        AttemptStarting(task_id="build", attempt=1, adapter="command", epoch="e"),
        TaskFinished(task_id="build", status=TaskStatus.NEEDS_ATTENTION),
    )
    resolve = task_pb.ResolveTaskRequest(
        run_id=RUN, task_id="build", resolution=task_pb.RESOLUTION_SKIP, note="never mind"
    )
    resolved = await world.runs.ResolveTask(resolve, metadata=AUTH)
    assert (resolved.task.id, resolved.task.status) == ("build", task_pb2.TASK_STATUS_SKIPPED)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (task_pb.CancelTasksRequest(run_id=RUN), "task_ids"),
        (task_pb.CancelTasksRequest(run_id=RUN, task_ids=["t"] * 1001), "task_ids"),
        (task_pb.CancelTasksRequest(task_ids=["t"]), "run_id"),
    ],
)
async def test_what_a_command_lacks_is_named(
    world: World, request_: task_pb.CancelTasksRequest, field: str
) -> None:
    got = await refused(world.runs.CancelTasks(request_, metadata=AUTH))
    assert (got.reason, got.fields) == ("SPEC_INVALID", [field])


async def test_a_resolution_and_a_steer_are_checked(world: World) -> None:
    resolve = task_pb.ResolveTaskRequest(run_id=RUN, task_id="build")
    long = task_pb.SteerTaskRequest(run_id=RUN, task_id="build", text="x" * 65_537)
    steer = task_pb.SteerTaskRequest(run_id=RUN, task_id="build", text="go left")
    await world.create(RUN)
    assert (await refused(world.runs.ResolveTask(resolve, metadata=AUTH))).fields == ["resolution"]
    assert (await refused(world.runs.SteerTask(long, metadata=AUTH))).reason == "REQUEST_TOO_LARGE"
    assert (await refused(world.runs.SteerTask(steer, metadata=AUTH))).reason == "NOT_STEERABLE"


async def test_only_a_finished_run_is_deleted_and_its_transcripts_with_it(world: World) -> None:
    await world.create(RUN)
    request = pb.DeleteRunRequest(run_id=RUN)
    early = await refused(world.runs.DeleteRun(request, metadata=AUTH))
    folder = world.wiring.transcripts / RUN
    folder.mkdir(parents=True)
    (folder / "build.1.stdout").write_bytes(b"x" * 1000)
    await world.supervisor.record(RUN, RunStarted(), RunFinished(status=RunStatus.FAILED))
    deleted = await world.runs.DeleteRun(request, metadata=AUTH)
    late = await refused(world.runs.GetRun(pb.GetRunRequest(run_id=RUN), metadata=AUTH))
    assert early.reason == "RUN_NOT_FINISHED"
    assert (deleted.freed_bytes, folder.exists()) == (1000, False)
    assert late.reason == "RUN_NOT_FOUND"


async def test_a_task_is_read_with_its_attempts_and_what_holds_it(world: World) -> None:
    await world.create(RUN, "build")
    later = Instant(1_760_000_000_000_000)
    await world.supervisor.record(
        RUN,
        RunStarted(),
        AttemptStarting(task_id="build", attempt=1, adapter="command", epoch="e", model="m"),
        TaskRetryScheduled(task_id="build", next_attempt=2, not_before=later),
    )
    request = task_pb.GetTaskRequest(run_id=RUN, task_id="build")
    task = (await world.runs.GetTask(request, metadata=AUTH)).task
    assert [attempt.number for attempt in task.attempts] == [1]
    assert (task.hold.reason, task.hold.until.seconds) == (7, 1_760_000_000)
    assert (task.max_attempts, task.model) == (3, "m")
    request.task_id = "other"
    assert (await refused(world.runs.GetTask(request, metadata=AUTH))).reason == "TASK_NOT_FOUND"
