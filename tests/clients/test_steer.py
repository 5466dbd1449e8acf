# ruff: noqa: N802  # the methods are named as in the contract
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewd_client.v1.ask_event_pb2 import SteerUpdated
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_event_pb2 import RunStarted
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.run_task_pb2 import SteerTaskRequest, SteerTaskResponse
from crewd_client.v1.task_pb2 import (
    STEER_STATUS_DELIVERED,
    STEER_STATUS_EXPIRED,
    STEER_STATUS_QUEUED,
    STEER_STATUS_SEEN,
    STEER_STATUS_UNDELIVERABLE,
    Steer,
    SteerStatus,
)
from tests.clients.support.crew import crew, ended, start
from tests.clients.support.fake_daemon import RUN, FakeDaemon

STEER = "steer_cccccccccc"


class Steered(FakeDaemon):
    """Takes every word."""

    status: SteerStatus.ValueType = STEER_STATUS_QUEUED

    def SteerTask(self, _: SteerTaskRequest) -> SteerTaskResponse:
        return SteerTaskResponse(steer=Steer(id=STEER, status=self.status))


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Steered]:
    async with Steered(tmp_path / "state") as fake:
        fake.add_run(Run())
        await fake.emit(Event(run_started=RunStarted()))
        yield fake


def news(status: SteerStatus.ValueType, steer_id: str = STEER) -> Event:
    return Event(steer_updated=SteerUpdated(steer_id=steer_id, status=status))


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (STEER_STATUS_DELIVERED, "delivered", 0),
        (STEER_STATUS_SEEN, "seen", 0),
        (STEER_STATUS_EXPIRED, "expired", 3),
        (STEER_STATUS_UNDELIVERABLE, "undeliverable", 3),
    ],
)
async def test_what_becomes_of_a_word_is_told(
    daemon: Steered, status: SteerStatus.ValueType, said: str, code: int
) -> None:
    process = await start(daemon, "steer", RUN, "a", "left", "--wait-timeout", "1h")
    asked = await daemon.called("WatchRun")
    await daemon.emit(news(STEER_STATUS_DELIVERED, "steer_dddddddddd"))
    await daemon.emit(news(STEER_STATUS_QUEUED))
    await daemon.emit(news(status))

    done = await ended(process)

    assert (done.code, done.out) == (code, f"{STEER} queued\n{STEER} {said}\n")
    assert (asked.after_sequence, list(asked.kinds)) == (2, ["steer_updated"])
    assert daemon.requests("SteerTask")[0].text == "left"


async def test_a_word_that_is_not_taken_in_time_stays_queued(daemon: Steered) -> None:
    done = await crew(daemon, "steer", RUN, "a", "left", "--wait-timeout", "50ms")

    assert (done.code, done.out) == (0, f"{STEER} queued\n")
    assert "has not taken it" in done.err


async def test_nothing_is_waited_for_if_told_so(daemon: Steered) -> None:
    done = await crew(daemon, "steer", RUN, "a", "left", "--no-wait")

    assert (done.code, done.out, done.err) == (0, f"{STEER} queued\n", "")
    assert daemon.requests("WatchRun") == []


async def test_a_worker_that_cannot_take_it_is_told_at_once(daemon: Steered) -> None:
    daemon.status = STEER_STATUS_UNDELIVERABLE

    done = await crew(daemon, "steer", RUN, "a", "left")

    assert (done.code, done.out) == (3, f"{STEER} undeliverable\n")


async def test_json_gives_the_word_each_time_it_changes(daemon: Steered) -> None:
    process = await start(daemon, "steer", RUN, "a", "left", "--json", "--wait-timeout", "1h")
    await daemon.called("WatchRun")
    await daemon.emit(news(STEER_STATUS_SEEN))

    told = [json.loads(line) for line in (await ended(process)).out.splitlines()]

    assert [each["steer"]["status"] for each in told] == ["queued", "seen"]
