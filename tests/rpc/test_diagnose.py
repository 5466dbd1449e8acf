from __future__ import annotations

from dataclasses import replace

import pytest

from crewd.core.events import (
    AskOpened,
    AttemptEnded,
    AttemptStarting,
    RunBlocked,
    RunFinished,
    RunStarted,
)
from crewd.core.words import Outcome, RunStatus
from crewd.rpc.diagnose import SHOWN
from crewd.v1 import daemon_service_pb2 as pb
from crewd.v1.diagnosis_pb2 import (
    FINDING_SEVERITY_ERROR,
    FINDING_SEVERITY_INFO,
    FINDING_SEVERITY_OK,
    FINDING_SEVERITY_WARNING,
    Finding,
)
from crewd.workers.host_link import JobSeen, Survivor
from tests.rpc.world import AUTH, World, an_ask, refused

RUN = "run_aaaaaaaaaa"


async def findings(world: World) -> list[Finding]:
    answer = await world.daemon.Diagnose(pb.DiagnoseRequest(), metadata=AUTH)
    return list(answer.findings)


async def found(world: World, identity: str) -> list[Finding]:
    return [finding for finding in await findings(world) if finding.id == identity]


async def one(world: World, identity: str) -> Finding:
    (finding,) = await found(world, identity)
    return finding


def host_has(world: World, *jobs: JobSeen, strays: tuple[Survivor, ...] = ()) -> None:
    assert world.host.snapshot is not None
    live = {job.job: job for job in jobs}
    world.host.snapshot = replace(world.host.snapshot, jobs=live, strays=strays)


def a_job(number: int, *, stopping: bool = False) -> JobSeen:
    return JobSeen(f"{RUN}/build/{number}", 99, 0, 0, 0, stopping)


async def test_a_daemon_without_trouble_says_that_all_is_well(world: World) -> None:
    told = await findings(world)
    assert {finding.severity for finding in told} == {FINDING_SEVERITY_OK}
    assert {f.id for f in told} == {
        "daemon.status",
        "store.paused",
        "host.status",
        "host.orphans",
        "catalog.cache",
    }


async def test_the_worst_comes_first(world: World) -> None:
    world.supervisor.told.paused = "the disk is nearly full"
    host_has(world, strays=(Survivor(99, "sleep"),))
    severities = [finding.severity for finding in await findings(world)]
    assert severities[:2] == [FINDING_SEVERITY_ERROR, FINDING_SEVERITY_WARNING]
    assert severities == sorted(severities, reverse=True)


async def test_a_store_that_takes_nothing_is_an_error(world: World) -> None:
    world.supervisor.told.paused = "the disk is nearly full"
    finding = await one(world, "store.paused")
    assert finding.severity == FINDING_SEVERITY_ERROR
    assert finding.message.startswith("no new run is taken: the disk is nearly full")


async def test_a_host_that_does_not_answer_is_an_error_with_the_way_out(world: World) -> None:
    world.host.snapshot = None
    world.supervisor.told.host_status = "unreachable"
    world.supervisor.told.host_message = "pid 4242 hangs"
    finding = await one(world, "host.status")
    assert (finding.severity, finding.command) == (FINDING_SEVERITY_ERROR, "kill -9 4242")
    assert "pid 4242 hangs" in finding.message
    assert await found(world, "host.orphans") == []


async def test_a_host_that_is_being_started_is_worth_knowing(world: World) -> None:
    world.supervisor.told.host_status = "connecting"
    assert (await one(world, "host.status")).severity == FINDING_SEVERITY_INFO


@pytest.mark.parametrize("status", ["draining", "recovering"])
async def test_a_daemon_that_does_not_serve_yet_or_any_more_says_so(
    world: World, status: str
) -> None:
    world.supervisor.told.draining = status == "draining"
    await world.server.set_serving(serving=status == "draining")
    assert (await one(world, "daemon.status")).severity == FINDING_SEVERITY_INFO


async def test_a_job_is_wanted_until_its_attempt_has_ended(world: World) -> None:
    await world.create(RUN)
    starting = AttemptStarting(task_id="build", attempt=1, adapter="command", epoch="e")
    await world.supervisor.record(RUN, RunStarted(), starting)
    host_has(world, a_job(1))
    assert (await one(world, "host.orphans")).severity == FINDING_SEVERITY_OK

    ended = AttemptEnded(task_id="build", attempt=1, outcome=Outcome.FAILED)
    await world.supervisor.record(RUN, ended)
    finding = await one(world, "host.orphans")
    assert (finding.severity, finding.command) == (FINDING_SEVERITY_WARNING, "kill -9 99")
    assert finding.details["job"] == f"{RUN}/build/1"


async def test_a_job_of_no_run_that_is_being_stopped_needs_no_command(world: World) -> None:
    host_has(world, a_job(7, stopping=True))
    finding = await one(world, "host.orphans")
    assert (finding.severity, finding.command) == (FINDING_SEVERITY_WARNING, "")


async def test_a_stray_that_escaped_every_mark_is_named(world: World) -> None:
    host_has(world, strays=(Survivor(99, "sleep 600"),))
    finding = await one(world, "host.strays")
    assert dict(finding.details) == {"pid": "99", "command": "sleep 600"}
    assert finding.command == "kill -9 99"


async def test_what_waits_for_a_person_comes_with_the_command(world: World) -> None:
    await world.create(RUN)
    blocked = RunBlocked(reason="needs_attention", detail="build needs a look")
    ask = AskOpened(an_ask("ask_a", RUN))
    await world.supervisor.record(RUN, RunStarted(), ask, blocked)
    run, asked = await one(world, "runs.blocked"), await one(world, "asks.open")
    crew = f"crew --state-dir {world.folder}"
    assert (run.severity, run.command) == (FINDING_SEVERITY_INFO, f"{crew} show {RUN}")
    assert "build needs a look" in run.message
    assert (asked.severity, asked.command) == (FINDING_SEVERITY_INFO, f"{crew} answer ask_a")
    assert "which?" in asked.message

    await world.supervisor.record(RUN, RunFinished(status=RunStatus.FAILED))
    assert await found(world, "runs.blocked") == []


async def test_of_many_that_wait_some_are_named_and_the_rest_is_mentioned(world: World) -> None:
    await world.create(RUN)
    asks = [AskOpened(an_ask(f"ask_{number}", RUN)) for number in range(SHOWN + 1)]
    await world.supervisor.record(RUN, RunStarted(), *asks)
    told = await found(world, "asks.open")
    assert len(told) == SHOWN + 1
    assert told[-1].command == f"crew --state-dir {world.folder} asks"


async def test_only_who_has_the_token_is_told(world: World) -> None:
    assert (await refused(world.daemon.Diagnose(pb.DiagnoseRequest()))).reason == "TOKEN_MISSING"
