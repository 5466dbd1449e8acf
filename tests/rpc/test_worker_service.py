from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Generator
from contextlib import contextmanager

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from crewd.core.errors import CrewdError, Reason
from crewd.core.model import HandedIn, Result
from crewd.core.words import Cause, Outcome
from crewd.runtime.feed import Bell
from crewd.v1 import actor_pb2, ask_pb2, ask_service_pb2, attempt_pb2, event_pb2
from crewd.v1 import worker_service_pb2 as pb
from crewd.v1.run_stream_pb2 import ListEventsRequest
from tests.rpc.workers import (
    JOB,
    OTHER,
    RUN,
    WORKER,
    Metadata,
    a_question,
    a_wait,
    answer,
    asked,
    bearing,
    ended,
    started,
    working,
)
from tests.rpc.world import AUTH, PATIENCE, TASK_TOKENS, World, refused
from tests.support.daemon import eventually


async def last_event(world: World) -> event_pb2.Event:
    listed = await world.runs.ListEvents(ListEventsRequest(run_id=RUN), metadata=AUTH)
    return listed.events[-1]


class Waits:
    """Counts who waits for an ask now."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0
        self._watch = world.feed.watch_ask
        monkeypatch.setattr(world.feed, "watch_ask", self._counted)

    async def are(self, count: int) -> None:
        await eventually(lambda: self._now == count)

    @contextmanager
    def _counted(self, ask_id: str) -> Generator[Bell]:
        with self._watch(ask_id) as bell:
            self._now += 1
            try:
                yield bell
            finally:
                self._now -= 1


@pytest.fixture
def waits(world: World, monkeypatch: pytest.MonkeyPatch) -> Waits:
    return Waits(world, monkeypatch)


def waiting(world: World, ask_id: str, metadata: Metadata = WORKER) -> Task[pb.WaitAskResponse]:
    async def wait() -> pb.WaitAskResponse:
        return await world.workers.WaitAsk(a_wait(ask_id), metadata=metadata)

    return asyncio.create_task(wait())


async def test_a_question_is_the_task_s_own_and_known_by_its_request_id(world: World) -> None:
    await working(world)
    options = [pb.CreateAskOption(id="a"), pb.CreateAskOption(id="b", label="B", description="x")]
    ask = await asked(
        world, detail="see", options=options, multiple=True, kind=ask_pb2.ASK_KIND_PERMISSION
    )
    assert (ask.run_id, ask.task_id, ask.attempt, ask.worker_ref) == (RUN, "build", 1, "q1")
    assert [(option.id, option.label) for option in ask.options] == [("a", "a"), ("b", "B")]
    assert (ask.allow_text, ask.max_choices, ask.kind) == (True, 2, ask_pb2.ASK_KIND_PERMISSION)
    event = await last_event(world)
    assert (event.kind, event.actor.kind) == ("ask_opened", actor_pb2.ACTOR_KIND_WORKER)
    assert (event.actor.name, event.actor.client) == (str(JOB), "kit/1")


async def test_a_question_asked_again_is_the_same_one(world: World) -> None:
    await working(world)
    first = await asked(world)
    assert await asked(world) == first
    assert (await asked(world, request_id="q2")).id == first.id
    assert (await asked(world, request_id="q3", worker_ref="q1", question="Other?")).id == first.id
    assert (await asked(world, request_id="q4", question="Other?")).id != first.id


async def test_a_request_id_counts_within_its_attempt(world: World) -> None:
    await working(world)
    first, second = await asked(world), await asked(world, OTHER)
    assert (first.task_id, second.task_id) == ("build", "other")
    await ended(world)
    await started(world, "build", 2)
    again = await asked(world, bearing(TASK_TOKENS.issue(JOB._replace(number=2))))
    assert (again.id, again.attempt) == (first.id, 2)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"question": " "}, ["question"]),
        ({"question": "x" * 8193}, ["question"]),
        ({"detail": "x" * 16_385}, ["detail"]),
        ({"worker_ref": "x" * 257}, ["worker_ref"]),
        ({"request_id": "x" * 65}, ["request_id"]),
        ({"kind": 99, "on_timeout": 99}, ["on_timeout", "kind"]),
        ({"timeout": Duration(seconds=-1)}, ["timeout"]),
        ({"allow_text": False}, ["options"]),
        ({"default_option_id": "a"}, ["default_option_id"]),
        ({"on_timeout": ask_pb2.ON_TIMEOUT_DEFAULT_OPTION}, ["default_option_id"]),
        ({"options": [pb.CreateAskOption(id=str(n)) for n in range(17)]}, ["options"]),
        (
            {"options": [pb.CreateAskOption(id=i, label="x" * 257) for i in ("", "a", "a")]},
            [
                "options[0].id",
                "options[0].label",
                "options[1].label",
                "options[2].id",
                "options[2].label",
            ],
        ),
    ],
)
async def test_what_is_wrong_with_a_question_is_told_field_by_field(
    world: World, fields: dict[str, object], wrong: list[str]
) -> None:
    await working(world)
    got = await refused(world.workers.CreateAsk(a_question(**fields), metadata=WORKER))
    assert (got.code, got.fields) == (grpc.StatusCode.INVALID_ARGUMENT, wrong)


async def test_an_outcome_reaches_who_waits_at_once_and_counts_as_delivered(
    world: World, waits: Waits
) -> None:
    await working(world)
    ask = await asked(world)
    calls = [waiting(world, ask.id) for _ in range(3)]
    await waits.are(3)
    await answer(world, ask.id)
    async with asyncio.timeout(PATIENCE):
        for got in await asyncio.gather(*calls):
            assert (got.settled, got.answer_text) == (True, "yes")
            assert got.ask.status == ask_pb2.ASK_STATUS_ANSWERED
    again = await world.workers.WaitAsk(a_wait(ask.id), metadata=WORKER)
    assert (again.answer_text, again.ask.delivery) == ("yes", ask_pb2.DELIVERY_DELIVERED)
    event = await last_event(world)
    assert (event.kind, event.actor.name) == ("ask_delivered", str(JOB))


async def test_a_secret_in_an_answer_is_told_to_its_worker_alone(world: World) -> None:
    await working(world)
    ask = await asked(world)
    secret = f"ghp_{'aB3x' * 9}"
    await answer(world, ask.id, secret)
    got = await world.workers.WaitAsk(a_wait(ask.id), metadata=WORKER)
    assert got.answer_text == secret
    assert secret.encode() not in got.ask.SerializeToString()
    read = await world.asks.GetAsk(ask_service_pb2.GetAskRequest(ask_id=ask.id), metadata=AUTH)
    events = await world.runs.ListEvents(ListEventsRequest(run_id=RUN), metadata=AUTH)
    assert all(secret.encode() not in seen.SerializeToString() for seen in (read, events))


async def test_a_wait_ends_with_its_time_and_with_its_caller(world: World, waits: Waits) -> None:
    await working(world)
    ask = await asked(world)
    got = await world.workers.WaitAsk(a_wait(ask.id, 1), metadata=WORKER)
    assert (got.settled, got.ask.status) == (False, ask_pb2.ASK_STATUS_OPEN)
    call = waiting(world, ask.id)
    await waits.are(1)
    call.cancel()
    await waits.are(0)
    await answer(world, ask.id)
    read = await world.asks.GetAsk(ask_service_pb2.GetAskRequest(ask_id=ask.id), metadata=AUTH)
    assert read.ask.delivery == ask_pb2.DELIVERY_QUEUED


async def test_a_wait_is_for_an_ask_of_this_task_and_a_minute_at_most(world: World) -> None:
    await working(world)
    ask = await asked(world, OTHER)
    for wait, reason in (
        (a_wait(ask.id), "ASK_NOT_FOUND"),
        (a_wait("ask_x"), "ASK_NOT_FOUND"),
        (a_wait(""), "SPEC_INVALID"),
        (a_wait(ask.id, 60_001), "SPEC_INVALID"),
        (a_wait(ask.id, 0), "SPEC_INVALID"),
    ):
        assert (await refused(world.workers.WaitAsk(wait, metadata=WORKER))).reason == reason


async def test_who_waits_is_told_when_the_attempt_has_ended_or_the_daemon_goes(
    world: World, waits: Waits
) -> None:
    await working(world)
    ask = await asked(world)
    late = waiting(world, ask.id)
    await waits.are(1)
    await ended(world)
    await answer(world, ask.id)
    assert (await refused(late)).reason == "TOKEN_INVALID"
    other = await asked(world, OTHER)
    wait = waiting(world, other.id, OTHER)
    await waits.are(1)
    world.wiring.presence.announce_end("restart", restart_expected=True)
    assert (await refused(wait)).reason == "DRAINING"


async def test_a_full_disk_does_not_keep_an_outcome_from_its_worker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await working(world)
    ask = await asked(world)
    await answer(world, ask.id)

    async def full(*_command: object) -> bytes:
        raise CrewdError(Reason.DISK_LOW, "nothing can be stored")

    monkeypatch.setattr(world.supervisor, "command", full)
    got = await world.workers.WaitAsk(a_wait(ask.id), metadata=WORKER)
    assert (got.answer_text, got.ask.delivery) == ("yes", ask_pb2.DELIVERY_QUEUED)


# Progress and results


async def test_progress_is_told_and_must_say_something(world: World) -> None:
    await working(world)
    made = pb.ReportProgressRequest(percent=50, step="tests", message="half of them")
    await world.workers.ReportProgress(made, metadata=WORKER)
    progress = world.supervisor.states[RUN].tasks["build"].progress
    assert progress is not None
    assert (progress.percent, progress.step, progress.message) == (50, "tests", "half of them")
    for wrong, field in (
        (pb.ReportProgressRequest(), "message"),
        (pb.ReportProgressRequest(percent=float("nan")), "percent"),
        (pb.ReportProgressRequest(step="x" * 257), "step"),
    ):
        got = await refused(world.workers.ReportProgress(wrong, metadata=WORKER))
        assert got.fields == [field]


def a_result(**fields: object) -> pb.SubmitResultRequest:
    given = {"outcome": attempt_pb2.OUTCOME_COMPLETED, "request_id": "r", **fields}
    return pb.SubmitResultRequest(**given)  # type: ignore[arg-type]


async def test_the_first_result_counts_and_may_be_sent_again(world: World) -> None:
    await working(world)
    result = a_result(text="done", data_json='{"n": 1}')
    for _ in range(2):
        await world.workers.SubmitResult(result, metadata=WORKER)
    attempt = world.supervisor.states[RUN].attempts["build"]
    assert attempt.result == Result(text="done", data_json='{"n": 1}')
    second = world.workers.SubmitResult(a_result(request_id="s"), metadata=WORKER)
    assert (await refused(second)).reason == "TASK_STATUS_CONFLICT"


async def test_a_failure_is_tried_again_unless_its_worker_says_no(world: World) -> None:
    await working(world)
    failed = a_result(outcome=attempt_pb2.OUTCOME_FAILED, message="no compiler", retryable=False)
    await world.workers.SubmitResult(failed, metadata=WORKER)
    handed_in = world.supervisor.states[RUN].attempts["build"].handed_in
    assert handed_in == HandedIn(
        outcome=Outcome.FAILED, cause=Cause.REPORTED, message="no compiler", retryable=False
    )


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"outcome": 0}, ["outcome"]),
        ({"outcome": attempt_pb2.OUTCOME_LOST}, ["outcome"]),
        ({"text": "x" * 65_537}, ["text"]),
        ({"data_json": "{"}, ["data_json"]),
        ({"data_json": "[NaN]"}, ["data_json"]),
        ({"data_json": "[" * 60_000}, ["data_json"]),
        ({"message": "x" * 4097}, ["message"]),
    ],
)
async def test_what_is_wrong_with_a_result_is_told_field_by_field(
    world: World, fields: dict[str, object], wrong: list[str]
) -> None:
    await working(world)
    got = await refused(world.workers.SubmitResult(a_result(**fields), metadata=WORKER))
    assert (got.code, got.fields) == (grpc.StatusCode.INVALID_ARGUMENT, wrong)


async def test_a_draining_daemon_lets_workers_ask_report_and_hand_in(world: World) -> None:
    await working(world)
    world.supervisor.told.draining = True
    assert (await asked(world)).status == ask_pb2.ASK_STATUS_OPEN
    await world.workers.ReportProgress(pb.ReportProgressRequest(step="one"), metadata=WORKER)
    await world.workers.SubmitResult(a_result(), metadata=WORKER)
    raw = pb.SubmitResultRequest.FromString(a_result().SerializeToString() + b"\xc2\x0c\x03new")
    got = await refused(world.workers.SubmitResult(raw, metadata=WORKER))
    assert got.reason == "UNKNOWN_FIELD"
