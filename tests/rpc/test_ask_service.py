from __future__ import annotations

import asyncio

import grpc

from crewd.core.events import AskOpened, RunFinished, RunStarted
from crewd.core.words import RunStatus
from crewd.v1 import ask_pb2
from crewd.v1 import ask_service_pb2 as pb
from tests.rpc.world import AUTH, World, an_ask, refused

RUN = "run_aaaaaaaaaa"
ASK = "ask_a"


async def opened(world: World) -> None:
    await world.create(RUN)
    await world.supervisor.record(RUN, RunStarted(), AskOpened(an_ask(ASK, RUN)))


def an_answer(text: str = "left", **fields: object) -> pb.AnswerAskRequest:
    return pb.AnswerAskRequest(ask_id=ASK, text=text, **fields)  # type: ignore[arg-type]


async def test_an_answer_is_durable_when_the_call_returns(world: World) -> None:
    await opened(world)
    answered = await world.asks.AnswerAsk(an_answer(note="I know it"), metadata=AUTH)
    read = await world.asks.GetAsk(pb.GetAskRequest(ask_id=ASK), metadata=AUTH)
    assert answered.ask.status == read.ask.status == ask_pb2.ASK_STATUS_ANSWERED
    assert (read.ask.answer.text, read.ask.answer.note) == ("left", "I know it")
    assert read.ask.answered_by.client == "test/1"


async def test_of_two_answers_the_first_wins_and_the_second_sees_it(world: World) -> None:
    await opened(world)
    calls = [world.asks.AnswerAsk(an_answer(text), metadata=AUTH) for text in ("left", "right")]
    results = await asyncio.gather(*calls, return_exceptions=True)
    lost = [r for r in results if isinstance(r, grpc.aio.AioRpcError)]
    late = await refused(world.asks.AnswerAsk(an_answer("up"), metadata=AUTH))
    winner = ask_pb2.Ask()
    assert len(lost) == 1
    assert (late.code, late.reason) == (grpc.StatusCode.ABORTED, "ASK_SETTLED")
    assert late.metadata == {"ask_id": ASK, "status": "answered"}
    assert late.status.details[-1].Unpack(winner)
    assert winner.answer.text in {"left", "right"}


async def test_the_winning_answer_is_told_when_the_run_is_long_gone(world: World) -> None:
    await opened(world)
    await world.asks.AnswerAsk(an_answer(), metadata=AUTH)
    await world.supervisor.record(RUN, RunFinished(status=RunStatus.FAILED))
    world.supervisor.states.clear()
    assert (await refused(world.asks.AnswerAsk(an_answer(), metadata=AUTH))).reason == "ASK_SETTLED"


async def test_the_same_answer_again_returns_what_the_first_did(world: World) -> None:
    await opened(world)
    request = an_answer(request_id="a1")
    first = await world.asks.AnswerAsk(request, metadata=AUTH)
    assert await world.asks.AnswerAsk(request, metadata=AUTH) == first
    other = an_answer("right", request_id="a1")
    got = await refused(world.asks.AnswerAsk(other, metadata=AUTH))
    assert got.reason == "REQUEST_ID_REUSED"


async def test_declining_goes_without_an_answer(world: World) -> None:
    await opened(world)
    both = await refused(world.asks.AnswerAsk(an_answer(decline=True), metadata=AUTH))
    declined = await world.asks.AnswerAsk(an_answer("", decline=True, note="no"), metadata=AUTH)
    assert (both.reason, both.fields) == ("SPEC_INVALID", ["decline"])
    assert declined.ask.status == ask_pb2.ASK_STATUS_DECLINED


async def test_what_an_ask_does_not_allow_is_refused_with_its_choices(world: World) -> None:
    await opened(world)
    wrong = await refused(world.asks.AnswerAsk(an_answer("", option_ids=["x"]), metadata=AUTH))
    long = await refused(world.asks.AnswerAsk(an_answer("x" * 65_537), metadata=AUTH))
    unknown = pb.AnswerAskRequest(ask_id="ask_z", text="?")
    assert (wrong.reason, wrong.metadata["choices"]) == ("ANSWER_NOT_ALLOWED", "a, b")
    assert wrong.fields == ["option_ids"]
    assert long.metadata == {"field": "text", "limit": "65536"}
    assert (await refused(world.asks.AnswerAsk(unknown, metadata=AUTH))).reason == "ASK_NOT_FOUND"
    assert (
        await refused(world.asks.GetAsk(pb.GetAskRequest(ask_id="ask_z"), metadata=AUTH))
    ).reason == "ASK_NOT_FOUND"


async def test_open_asks_are_listed_first(world: World) -> None:
    await opened(world)
    await world.supervisor.record(RUN, AskOpened(an_ask("ask_b", RUN)))
    await world.asks.AnswerAsk(an_answer(), metadata=AUTH)
    first = await world.asks.ListAsks(pb.ListAsksRequest(page_size=1), metadata=AUTH)
    rest = await world.asks.ListAsks(
        pb.ListAsksRequest(page_size=5, page_token=first.next_page_token), metadata=AUTH
    )
    which = pb.AskFilter(run_id="run_other")
    none = await world.asks.ListAsks(pb.ListAsksRequest(filter=which), metadata=AUTH)
    assert [ask.id for ask in (*first.asks, *rest.asks)] == ["ask_b", ASK]
    assert not none.asks
