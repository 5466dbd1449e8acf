"""What nobody should send, name, print or remove."""

from __future__ import annotations

import pytest

from crewd.host.protocol import UNREAD_BYTES
from crewd_client import CrewdError, InvalidRequestError
from crewd_client.v1.attempt_pb2 import OUTCOME_COMPLETED
from crewd_client.v1.failure_pb2 import CAUSE_EXECUTABLE_MISSING, CAUSE_WORKSPACE_MISSING
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED, RUN_STATUS_FAILED
from crewd_client.v1.run_service_pb2 import CreateRunRequest
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE, TaskSpec
from crewd_client.v1.task_pb2 import TASK_STATUS_FAILED
from tests.support.daemon import Daemon, eventually
from tests.support.desk import Desk, plain, retries, script, shell
from tests.support.workers import noise

FIELD_127 = b"\xfa\x07\x01x"


async def test_a_spec_that_cannot_be_carried_out_is_refused_and_says_why(desk: Desk) -> None:
    in_a_circle = [shell(t, "true", depends_on=[d]) for t, d in ("ab", "bc", "ca")]
    wrong = {
        "GRAPH_CYCLE": in_a_circle,
        "GRAPH_UNKNOWN_TASK": [shell("a", "true", depends_on=["x"])],
        "WORKER_NOT_FOUND": [TaskSpec(id="a", command=["no-such-program"])],
        "SPEC_INVALID": [shell("A task", "true")],
    }
    for reason, tasks in wrong.items():
        assert (await refusal(desk, *tasks)).reason == reason
    circle = await refusal(desk, *in_a_circle)
    assert circle.metadata["path"].count("a") == 2
    missing = await refusal(desk, TaskSpec(id="a", command=["no-such-program"]))
    assert missing.metadata["command"] == "no-such-program"
    assert missing.metadata["path"] == "/usr/bin:/bin"
    request = desk.request(shell("a", "true"))
    request.spec.workspace.cwd = "/no/such/place"
    with pytest.raises(InvalidRequestError) as nowhere:
        await desk.client.runs.CreateRun(request)
    assert nowhere.value.reason == "CWD_INVALID"
    assert [run async for run in desk.runs()] == []


async def refusal(desk: Desk, *tasks: TaskSpec) -> CrewdError:
    with pytest.raises(CrewdError) as refused:
        await desk.submit(*tasks)
    return refused.value


async def test_a_request_that_is_not_understood_or_too_large_is_refused(desk: Desk) -> None:
    sound = desk.request(shell("a", "true"))
    strange = CreateRunRequest.FromString(sound.SerializeToString() + FIELD_127)
    with pytest.raises(InvalidRequestError) as unknown:
        await desk.client.runs.CreateRun(strange)
    assert unknown.value.reason == "UNKNOWN_FIELD"
    with pytest.raises(InvalidRequestError) as large:
        await desk.submit(shell("a", "true"), goal="g" * 10_000_000)
    assert large.value.reason == "REQUEST_TOO_LARGE"
    assert large.value.metadata["field"] == "goal"
    with pytest.raises(CrewdError) as huge:
        await desk.submit(shell("a", "true"), goal="g" * 20_000_000)
    assert huge.value.code.name == "RESOURCE_EXHAUSTED"
    assert (await desk.ended(await desk.submit(shell("a", "true")))).status == RUN_STATUS_COMPLETED


async def test_what_vanishes_after_the_start_fails_its_task_at_once(desk: Desk) -> None:
    place, program = desk.root / "place", desk.root / "program"
    place.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    run_id = await desk.submit(
        plain("gate", f"wait {desk.root / 'gate'}"),
        shell("cwd", "true", cwd=str(place), depends_on=["gate"]),
        shell("never", "true", cwd=str(desk.root / "never")),
        TaskSpec(id="program", command=[str(program)], depends_on=["gate"]),
        failure_mode=FAILURE_MODE_CONTINUE,
        retry=retries(3),
    )
    place.rmdir()
    program.unlink()
    (desk.root / "gate").touch()
    assert (await desk.ended(run_id)).status == RUN_STATUS_FAILED
    for task_id, cause, name in (
        ("cwd", CAUSE_WORKSPACE_MISSING, place),
        ("never", CAUSE_WORKSPACE_MISSING, desk.root / "never"),
        ("program", CAUSE_EXECUTABLE_MISSING, program),
    ):
        task = await desk.task(run_id, task_id)
        assert (task.status, len(task.attempts)) == (TASK_STATUS_FAILED, 1)
        assert task.attempts[0].cause == cause
        assert str(name) in task.status_message


async def test_noise_is_kept_as_output_and_does_not_hide_a_result(desk: Desk) -> None:
    run_id = await desk.submit(
        script("garbage", "noise", "garbage", adapter="jsonl"),
        script("long", "noise", "long", adapter="jsonl"),
    )
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    for task_id in ("garbage", "long"):
        task = await desk.task(run_id, task_id)
        assert (task.result.text, task.attempt) == ("done", 1)
    garbage = await desk.output(run_id, "garbage")
    assert b"no end of line at all" in garbage
    assert garbage.count(b"\n") >= len(noise.GARBAGE)
    warned = {
        e.warning_raised.code for e in await desk.events(run_id) if e.kind == "warning_raised"
    }
    assert "line_too_long" in warned
    kept = (await desk.output(run_id, "long")).count(b"X")
    assert noise.LONG_LINE_BYTES * 0.95 < kept < noise.LONG_LINE_BYTES, "masked where it is cut"
    assert (await desk.attempt(run_id, "long")).stdout_bytes > kept


async def test_a_full_spool_holds_the_worker_up_and_loses_nothing(
    daemon: Daemon, desk: Desk
) -> None:
    gate = desk.root / "gate"
    flood = script("flood", "noise", "flood", env={"FLOODGATE": str(gate)})
    run_id = await desk.submit(flood)
    await desk.happened(run_id, "attempt_started")
    with daemon.stopped():
        gate.touch()
        await eventually(lambda: spooled(daemon) >= UNREAD_BYTES, "the spool is full")
        assert spooled(daemon) < UNREAD_BYTES + noise.MIB
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    attempt = await desk.attempt(run_id, "flood")
    assert attempt.outcome == OUTCOME_COMPLETED
    output = await desk.output(run_id, "flood")
    assert output.count(b"Y") == noise.FLOOD_BYTES // 1024 * 1023
    assert len(output) == attempt.stdout_bytes


def spooled(daemon: Daemon) -> int:
    return sum(path.stat().st_size for path in daemon.hosts.spool.glob("*.stdout.*"))
