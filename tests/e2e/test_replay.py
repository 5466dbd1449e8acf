"""The events of a run add up to its rows."""

from __future__ import annotations

from crewd_client.v1.run_pb2 import RUN_STATUS_BLOCKED, RUN_STATUS_CANCELLED, RUN_STATUS_FAILED
from crewd_client.v1.run_service_pb2 import ResumeRunRequest
from crewd_client.v1.run_task_pb2 import (
    RESOLUTION_SKIP,
    CancelTasksRequest,
    ResolveTaskRequest,
)
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk, plain, retries, shell, worker
from tests.support.replay import expect_rows_as_told


async def test_the_events_of_a_run_with_everything_in_it_add_up_to_its_rows(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await with_everything(desk)
    ask = await desk.asked(run_id)
    await desk.happened(run_id, "attempt_started", "stopped")
    await desk.client.runs.CancelTasks(CancelTasksRequest(run_id=run_id, task_ids=["stopped"]))
    await daemon.restart()
    await desk.answer(ask.id, "yes")
    await eventually(lambda: desk_is(desk, run_id, RUN_STATUS_BLOCKED, RUN_STATUS_FAILED))
    await desk.client.runs.ResolveTask(
        ResolveTaskRequest(run_id=run_id, task_id="mute", resolution=RESOLUTION_SKIP, note="no")
    )
    assert (await desk.ended(run_id)).status == RUN_STATUS_FAILED
    await expect_rows_as_told(desk, run_id)
    await desk.client.runs.ResumeRun(ResumeRunRequest(run_id=run_id))
    await desk.happened(run_id, "attempt_started", "stopped", attempt=2)
    await desk.cancel(run_id)
    await eventually(lambda: desk_is(desk, run_id, RUN_STATUS_CANCELLED))
    await expect_rows_as_told(desk, run_id)


async def desk_is(desk: Desk, run_id: str, *statuses: int) -> bool:
    return (await desk.run(run_id)).status in statuses


async def with_everything(desk: Desk) -> str:
    return await desk.submit(
        worker("flaky", "usage 3", "flaky 1", "usage 4", "result ok"),
        worker("asks", "hello", "usage 5", "ask q", "result ok", depends_on=["flaky"]),
        worker("declined", "fail no"),
        shell("needs", "true", depends_on=["declined"]),
        shell("fails", "exit 3"),
        worker("mute", "usage 6"),
        plain("stopped", "lines 3 0", "wait /nowhere"),
        shell("after", "true", depends_on=["stopped"]),
        failure_mode=FAILURE_MODE_CONTINUE,
        retry=retries(2),
    )
