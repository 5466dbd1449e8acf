from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path

import grpc
import pytest

import crewd_client
from crewd_client import (
    AccessError,
    AskSettledError,
    Client,
    InvalidRequestError,
    NoDaemonError,
    NotFoundError,
    UnavailableError,
    Violation,
    list_runs,
)
from crewd_client.errors import CursorExpiredError
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, Ask
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.run_service_pb2 import (
    CancelRunRequest,
    CreateRunRequest,
    GetRunRequest,
    ListRunsRequest,
)
from tests.clients.support.fake_daemon import ASK, RUN, FakeDaemon
from tests.clients.support.wire import RefusedError, bad_request

CODE = grpc.StatusCode


async def connected(daemon: FakeDaemon) -> Client:
    return await Client.connect(state_dir=daemon.state_dir, env={}, client_name="test/1")


async def test_every_call_carries_the_token_and_the_client_s_name(daemon: FakeDaemon) -> None:
    async with await connected(daemon) as client:
        await client.runs.ListRuns(ListRunsRequest())

    told = daemon.told("ListRuns")
    assert (told["authorization"], told["x-crewd-client"]) == ("Bearer a-token", "test/1")


async def test_a_daemon_of_another_state_directory_is_not_the_one_meant(
    daemon: FakeDaemon,
) -> None:
    daemon.told_state_dir = "/another"

    with pytest.raises(NoDaemonError, match="serves /another"):
        await connected(daemon)


async def test_without_a_daemon_connecting_fails_at_once(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        with pytest.raises(NoDaemonError, match="no daemon answers at"):
            await Client.connect(state_dir=tmp_path, env={})


async def test_a_wrong_token_is_an_access_error(daemon: FakeDaemon) -> None:
    env = {"CREWD_TOKEN": "wrong"}

    with pytest.raises(AccessError) as raised:
        await Client.connect(state_dir=daemon.state_dir, env=env)

    assert raised.value.reason == "TOKEN_INVALID"


async def test_with_a_task_token_nothing_else_is_asked(daemon: FakeDaemon) -> None:
    env = {"CREWD_TASK_TOKEN": "task", "CREWD_SOCKET": str(daemon.socket)}

    async with await Client.connect(env=env):
        assert daemon.calls == []


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (RefusedError(CODE.NOT_FOUND, "RUN_NOT_FOUND", "no such run"), NotFoundError),
        (RefusedError(CODE.OUT_OF_RANGE, "CURSOR_EXPIRED", "old"), CursorExpiredError),
        (RefusedError(CODE.INVALID_ARGUMENT, "LATER_REASON", "bad"), InvalidRequestError),
    ],
    ids=lambda each: getattr(each, "message", ""),
)
async def test_errors_come_by_reason_then_by_code(
    daemon: FakeDaemon, refused: RefusedError, expected: type[Exception]
) -> None:
    daemon.refusals["GetRun"] = [refused]

    async with await connected(daemon) as client:
        with pytest.raises(expected, match=refused.message):
            await client.runs.GetRun(GetRunRequest(run_id=RUN))


async def test_violations_tell_where(daemon: FakeDaemon) -> None:
    details = [bad_request("spec.goal", "is too long")]
    refused = RefusedError(CODE.INVALID_ARGUMENT, "SPEC_INVALID", "bad", details)
    daemon.refusals["CreateRun"] = [refused]

    async with await connected(daemon) as client:
        with pytest.raises(InvalidRequestError) as raised:
            await client.runs.CreateRun(CreateRunRequest())

    assert raised.value.violations == (Violation("spec.goal", "is too long"),)


async def test_the_second_answer_learns_of_the_first(daemon: FakeDaemon) -> None:
    daemon.asks[ASK] = Ask(id=ASK, status=ASK_STATUS_ANSWERED)

    async with await connected(daemon) as client:
        with pytest.raises(AskSettledError) as raised:
            await client.asks.AnswerAsk(AnswerAskRequest(ask_id=ASK, text="late"))

    assert raised.value.ask == daemon.asks[ASK]


async def test_a_write_gets_a_request_id_and_keeps_it_when_tried_again(
    daemon: FakeDaemon,
) -> None:
    daemon.add_run(Run())
    daemon.refusals["CancelRun"] = [RefusedError(CODE.UNAVAILABLE, "RECOVERING")]
    request = CancelRunRequest(run_id=RUN)

    async with await connected(daemon) as client:
        await client.runs.CancelRun(request)

    first, second = daemon.requests("CancelRun")
    assert first.request_id
    assert first == second
    assert not request.request_id


async def test_only_unavailable_is_tried_again(daemon: FakeDaemon) -> None:
    daemon.refusals["ListRuns"] = [RefusedError(CODE.RESOURCE_EXHAUSTED, "QUEUE_FULL")]

    async with await connected(daemon) as client:
        with pytest.raises(crewd_client.CrewdError) as raised:
            await client.runs.ListRuns(ListRunsRequest())

    assert raised.value.reason == "QUEUE_FULL"
    assert len(daemon.requests("ListRuns")) == 1


async def test_a_call_is_tried_no_longer_than_its_deadline(daemon: FakeDaemon) -> None:
    daemon.refusals["ListRuns"] = [RefusedError(CODE.UNAVAILABLE, "DRAINING")] * 99

    async with await connected(daemon) as client:
        with pytest.raises(UnavailableError):
            await client.runs.ListRuns(ListRunsRequest(), timeout=0.3)

    assert 1 < len(daemon.requests("ListRuns")) < 9


async def test_a_call_outlives_a_restart_at_another_socket_with_another_token(
    daemon: FakeDaemon,
) -> None:
    async with await connected(daemon) as client:
        await daemon.stop()
        waiting = asyncio.ensure_future(client.runs.ListRuns(ListRunsRequest()))
        daemon.socket = daemon.state_dir / "other.sock"
        daemon.token = "another"  # noqa: S105
        await daemon.start()
        await waiting


async def test_a_list_is_read_page_after_page(daemon: FakeDaemon) -> None:
    for number in range(5):
        daemon.add_run(Run(id=f"run_{number}"))

    async with await connected(daemon) as client:
        found = [run.id async for run in list_runs(client)]

    assert found == [f"run_{number}" for number in range(5)]
    assert len(daemon.requests("ListRuns")) == 3


def test_the_package_exports_what_it_lists_in_order() -> None:
    assert crewd_client.__all__ == sorted(
        crewd_client.__all__, key=lambda name: (name.islower(), name)
    )
    for name in crewd_client.__all__:
        assert hasattr(import_module("crewd_client"), name)
