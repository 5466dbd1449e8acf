from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from crewd_client import (
    AccessError,
    InvalidRequestError,
    NotAWorkerError,
    Option,
    StatusConflictError,
    Worker,
)
from crewd_client.v1.artifact_pb2 import Artifact
from crewd_client.v1.ask_pb2 import (
    ASK_STATUS_ANSWERED,
    ASK_STATUS_CANCELLED,
    ASK_STATUS_DECLINED,
    ASK_STATUS_OPEN,
    ASK_STATUS_SUPERSEDED,
    ASK_STATUS_TIMED_OUT,
    ON_TIMEOUT_CONTINUE,
    ON_TIMEOUT_FAIL_TASK,
    Ask,
    AskAnswer,
    AskStatus,
)
from crewd_client.v1.attempt_pb2 import OUTCOME_COMPLETED, OUTCOME_FAILED
from crewd_client.v1.worker_service_pb2 import (
    CreateAskRequest,
    CreateAskResponse,
    RecordArtifactRequest,
    RecordArtifactResponse,
    ReportProgressRequest,
    ReportProgressResponse,
    SubmitResultRequest,
    SubmitResultResponse,
    WaitAskRequest,
    WaitAskResponse,
)
from tests.clients.support.crew import crew, ended, start
from tests.clients.support.fake_daemon import ASK, RUN, TOKEN, FakeDaemon
from tests.clients.support.wire import RefusedError, bad_request

AWAY = [
    RefusedError(grpc.StatusCode.UNAVAILABLE, "RECOVERING", "not yet"),
    RefusedError(grpc.StatusCode.UNAVAILABLE),
    RefusedError(grpc.StatusCode.CANCELLED),
    RefusedError(grpc.StatusCode.DEADLINE_EXCEEDED),
]


class Home(FakeDaemon):
    """The daemon of a worker. Every second wait for the ask has the outcome."""

    outcome: AskStatus.ValueType = ASK_STATUS_ANSWERED
    option_ids: tuple[str, ...] = ()
    text = "the secret word"

    def CreateAsk(self, request: CreateAskRequest) -> CreateAskResponse:  # noqa: N802
        del request
        return CreateAskResponse(ask=Ask(id=ASK, status=ASK_STATUS_OPEN))

    def WaitAsk(self, request: WaitAskRequest) -> WaitAskResponse:  # noqa: N802
        if len(self.requests("WaitAsk")) % 2:
            return WaitAskResponse(ask=Ask(id=request.ask_id, status=ASK_STATUS_OPEN))
        answer = AskAnswer(option_ids=self.option_ids, text="***")
        ask = Ask(id=request.ask_id, status=self.outcome, answer=answer)
        return WaitAskResponse(ask=ask, settled=True, answer_text=self.text)

    def ReportProgress(self, request: ReportProgressRequest) -> ReportProgressResponse:  # noqa: N802
        del request
        return ReportProgressResponse()

    def RecordArtifact(self, request: RecordArtifactRequest) -> RecordArtifactResponse:  # noqa: N802
        return RecordArtifactResponse(artifact=Artifact(name=request.name))

    def SubmitResult(self, request: SubmitResultRequest) -> SubmitResultResponse:  # noqa: N802
        del request
        return SubmitResultResponse()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    async with Home(tmp_path / "state") as made:
        yield made


def variables(home: Home) -> dict[str, str]:
    return {"CREWD_TASK_TOKEN": TOKEN, "CREWD_SOCKET": str(home.socket)}


async def working(home: Home) -> Worker:
    return await Worker.from_environment(variables(home))


async def test_an_answer_comes_as_it_was_given(home: Home) -> None:
    home.option_ids = ("a",)
    async with await working(home) as worker:
        answer = await worker.ask(
            "Which?",
            options=[Option("a", "A"), Option("b")],
            timeout=timedelta(seconds=9),
            on_timeout=ON_TIMEOUT_FAIL_TASK,
            ref="mine",
        )
    assert (answer.answered, answer.text, answer.choice) == (True, "the secret word", "a")
    [request] = home.requests("CreateAsk")
    assert (request.question, request.worker_ref, request.allow_text) == ("Which?", "mine", True)
    assert [(each.id, each.label) for each in request.options] == [("a", "A"), ("b", "")]
    assert (request.timeout.seconds, request.on_timeout) == (9, ON_TIMEOUT_FAIL_TASK)
    assert len(home.requests("WaitAsk")) == 2
    assert home.told("CreateAsk")["authorization"] == f"Bearer {TOKEN}"


async def test_a_question_outlives_every_way_the_daemon_can_be_away(home: Home) -> None:
    home.refusals = {"CreateAsk": list(AWAY), "WaitAsk": list(AWAY)}
    async with await working(home) as worker:
        answer = await worker.ask("Go on?")
    assert answer.text == "the secret word"
    ids = {request.request_id for request in home.requests("CreateAsk")}
    assert len(home.requests("CreateAsk")) == len(AWAY) + 1
    assert [len(request_id) for request_id in ids] == [32]


async def test_a_worker_may_call_before_the_daemon_is_back(home: Home) -> None:
    await home.stop()
    async with await working(home) as worker:
        asking = asyncio.create_task(worker.ask("Go on?"))
        await asyncio.sleep(0)
        await home.start()
        async with asyncio.timeout(20):
            assert (await asking).answered


async def test_what_the_daemon_refuses_is_not_tried_again(home: Home) -> None:
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    details = [bad_request("data_json", "$: 'n' is a required property")]
    home.refusals = {
        "CreateAsk": [RefusedError(grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID", "ended")],
        "SubmitResult": [
            RefusedError(invalid, "SPEC_INVALID", "bad", details),
            RefusedError(grpc.StatusCode.FAILED_PRECONDITION, "TASK_STATUS_CONFLICT", "twice"),
        ],
    }
    async with await working(home) as worker:
        with pytest.raises(AccessError, match="ended"):
            await worker.ask("Go on?")
        with pytest.raises(InvalidRequestError) as raised:
            await worker.submit(data={})
        with pytest.raises(StatusConflictError):
            await worker.submit("again")
    assert raised.value.violations[0].field == "data_json"


async def test_progress_and_results_say_what_they_were_given(home: Home) -> None:
    async with await working(home) as worker:
        await worker.progress("half of them", percent=50, step="tests")
        await worker.progress("more")
        await worker.submit("done", data={"n": 1})
        await worker.fail("no compiler", retryable=False)
    first, second = home.requests("ReportProgress")
    assert (first.percent, first.step, first.message) == (50, "tests", "half of them")
    assert not second.HasField("percent")
    done, failed = home.requests("SubmitResult")
    assert (done.outcome, done.text, done.data_json) == (OUTCOME_COMPLETED, "done", '{"n": 1}')
    assert (failed.outcome, failed.message) == (OUTCOME_FAILED, "no compiler")
    assert failed.HasField("retryable")
    assert not failed.retryable
    assert done.request_id != failed.request_id


async def test_a_file_or_bytes_are_recorded(home: Home) -> None:
    async with await working(home) as worker:
        artifact = await worker.record_artifact("report.md", path=Path("out.md"), description="d")
        await worker.record_artifact("raw", data=b"")
    by_path, by_data = home.requests("RecordArtifact")
    assert (artifact.name, by_path.path, by_path.description) == ("report.md", "out.md", "d")
    assert (by_path.WhichOneof("content"), by_data.WhichOneof("content")) == ("path", "data")


async def test_a_process_that_crewd_did_not_start_is_no_worker() -> None:
    with pytest.raises(NotAWorkerError, match="CREWD_TASK_TOKEN is not set"):
        await Worker.from_environment({})


# crew ask


@pytest.mark.parametrize(
    ("option_ids", "text", "out"),
    [
        ((), "two\nlines", "two\nlines\n"),
        (("a",), "", "a\n"),
        (("a", "b"), "and why", "a\nb\nand why\n"),
    ],
)
async def test_the_answer_is_printed_and_nothing_else(
    home: Home, option_ids: tuple[str, ...], text: str, out: str
) -> None:
    home.option_ids, home.text = option_ids, text
    done = await crew(home, "ask", "Go on?", env=variables(home))
    assert (done.code, done.out, done.err) == (0, out, "")


@pytest.mark.parametrize(
    ("outcome", "code", "word"),
    [
        (ASK_STATUS_DECLINED, 3, "declined"),
        (ASK_STATUS_CANCELLED, 3, "cancelled"),
        (ASK_STATUS_SUPERSEDED, 3, "superseded"),
        (ASK_STATUS_TIMED_OUT, 124, "timed_out"),
    ],
)
async def test_the_exit_code_tells_why_there_is_no_answer(
    home: Home, outcome: AskStatus.ValueType, code: int, word: str
) -> None:
    home.outcome = outcome
    done = await crew(home, "ask", "Go on?", env=variables(home))
    assert (done.code, done.out, done.err) == (code, "", f"no answer: {word}\n")


async def test_the_options_of_the_command_make_the_question(home: Home) -> None:
    given = ["--option", "a=Left", "--option", "b", "--detail", "-", "--multiple"]
    more = ["--timeout", "90", "--default", "a", "--json"]
    done = await crew(home, "ask", "Which?", *given, *more, stdin="why", env=variables(home))
    [request] = home.requests("CreateAsk")
    assert [(each.id, each.label) for each in request.options] == [("a", "Left"), ("b", "")]
    assert (request.detail, request.multiple, request.allow_text) == ("why", True, False)
    assert (request.timeout.seconds, request.on_timeout) == (90, ON_TIMEOUT_CONTINUE)
    assert request.default_option_id == "a"
    told = json.loads(done.out)
    assert told["answer"] == {"text": "the secret word", "option_ids": []}
    assert (told["ask"]["id"], told["ask"]["status"]) == (ASK, "answered")


@pytest.mark.parametrize(
    ("options", "allowed"),
    [((), True), (("--option", "a"), False), (("--option", "a", "--text"), True)],
)
async def test_other_words_than_an_option_are_an_answer_only_if_asked_for(
    home: Home, options: tuple[str, ...], *, allowed: bool
) -> None:
    await crew(home, "ask", "Which?", *options, env=variables(home))
    assert home.requests("CreateAsk")[0].allow_text is allowed


async def test_the_command_waits_while_the_daemon_is_away(home: Home) -> None:
    home.refusals = {"WaitAsk": list(AWAY)}
    await home.stop()
    process = await start(home, "ask", "Go on?", env=variables(home))
    await home.start()
    done = await ended(process)
    assert (done.code, done.out, done.err) == (0, "the secret word\n", "")


async def test_asking_is_for_workers_and_commanding_is_not(home: Home) -> None:
    outside = await crew(home, "ask", "Go on?")
    assert (outside.code, home.calls) == (2, [])
    assert "works inside a worker only" in outside.err
    denied = RefusedError(grpc.StatusCode.PERMISSION_DENIED, "SCOPE_DENIED", "a worker may not")
    home.refusals = {"CancelRun": [denied], "GetRun": [denied]}
    inside = await crew(home, "cancel", RUN, env=variables(home))
    assert (inside.code, inside.err) == (6, "error: a worker may not\n")
