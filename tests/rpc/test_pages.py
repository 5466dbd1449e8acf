from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from crewd.core.events import RunFinished, RunStarted
from crewd.core.words import RunStatus
from crewd.v1 import ask_service_pb2, run_pb2, run_stream_pb2
from crewd.v1 import run_service_pb2 as pb
from crewd.v1 import run_task_pb2 as task_pb
from tests.rpc.world import AUTH, World, refused

RUN = "run_aaaaaaaaaa"


async def pages(world: World, request: pb.ListRunsRequest) -> list[pb.ListRunsResponse]:
    got: list[pb.ListRunsResponse] = []
    while not got or request.page_token:
        got.append(await world.runs.ListRuns(request, metadata=AUTH))
        request.page_token = got[-1].next_page_token
    return got


async def test_unfinished_runs_come_first_then_the_newest_a_page_at_a_time(world: World) -> None:
    for letter in "abcde":
        await world.create(f"run_{letter}")
    for run_id in ("run_d", "run_b"):
        await world.supervisor.record(run_id, RunStarted(), RunFinished(status=RunStatus.FAILED))
    got = await pages(world, pb.ListRunsRequest(page_size=2))
    ids = [[run.id[-1] for run in page.runs] for page in got]
    assert ids == [["e", "c"], ["a", "d"], ["b"]]
    assert {page.as_of_sequence for page in got} == {world.feed.last_sequence}


async def test_filters_narrow(world: World) -> None:
    await world.create("run_a")
    await world.create("run_b")
    await world.supervisor.record("run_b", RunStarted(), RunFinished(status=RunStatus.FAILED))
    failed = run_pb2.RunFilter(statuses=[run_pb2.RUN_STATUS_FAILED], cwd=f"{world.work}/")
    elsewhere = run_pb2.RunFilter(cwd="/somewhere/else")
    labelled = run_pb2.RunFilter(labels={"team": "red"})
    assert [r.id for r in (await pages(world, pb.ListRunsRequest(filter=failed)))[0].runs] == [
        "run_b"
    ]
    for which in (elsewhere, labelled):
        assert not (await pages(world, pb.ListRunsRequest(filter=which)))[0].runs


async def test_a_page_is_no_larger_than_a_response_may_be(world: World) -> None:
    for number in range(5):
        await world.create(f"run_{number}", goal="g" * 400_000)
    await world.create("run_5", goal="g" * 1024 * 1024)
    got = await pages(world, pb.ListRunsRequest())
    assert [len(page.runs) for page in got] == [1, 2, 2, 1]
    assert [run.id for page in got for run in page.runs] == [f"run_{n}" for n in (5, 4, 3, 2, 1, 0)]


async def test_tasks_are_listed_in_file_order_with_short_prompts(world: World) -> None:
    await world.create(RUN, *[f"t{n}" for n in range(150)])
    request = task_pb.ListTasksRequest(run_id=RUN)
    first = await world.runs.ListTasks(request, metadata=AUTH)
    request.page_token = first.next_page_token
    rest = await world.runs.ListTasks(request, metadata=AUTH)
    assert [t.id for t in (*first.tasks, *rest.tasks)] == [f"t{n}" for n in range(150)]
    assert (len(first.tasks), rest.next_page_token) == (100, "")


@pytest.mark.parametrize(
    "token", ["nonsense", "é", urlsafe_b64encode(b'["x",["a"]]').decode(), "////"]
)
async def test_a_token_that_was_not_given_out_is_refused(world: World, token: str) -> None:
    await world.create(RUN)
    runs = pb.ListRunsRequest(page_token=token)
    events = run_stream_pb2.ListEventsRequest(run_id=RUN, page_token=token)
    asks = ask_service_pb2.ListAsksRequest(page_token=token)
    got = [
        await refused(world.runs.ListRuns(runs, metadata=AUTH)),
        await refused(world.runs.ListEvents(events, metadata=AUTH)),
        await refused(world.asks.ListAsks(asks, metadata=AUTH)),
    ]
    assert [each.reason for each in got] == ["PAGE_TOKEN_INVALID"] * 3


async def test_a_token_counts_only_with_its_own_request(world: World) -> None:
    await world.create("run_a")
    await world.create("run_b")
    first = await world.runs.ListRuns(pb.ListRunsRequest(page_size=1), metadata=AUTH)
    other = pb.ListRunsRequest(page_size=1, page_token=first.next_page_token)
    other.filter.cwd = "/elsewhere"
    assert (await refused(world.runs.ListRuns(other, metadata=AUTH))).reason == "PAGE_TOKEN_INVALID"


async def test_a_negative_page_size_is_refused_and_a_large_one_is_cut(world: World) -> None:
    negative = await refused(world.runs.ListRuns(pb.ListRunsRequest(page_size=-1), metadata=AUTH))
    large = await world.runs.ListRuns(pb.ListRunsRequest(page_size=1_000_000), metadata=AUTH)
    assert (negative.reason, negative.fields) == ("SPEC_INVALID", ["page_size"])
    assert not large.next_page_token
