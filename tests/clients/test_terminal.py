from __future__ import annotations

import pytest

from crewd_client.commands.answers import NoAnswerError, answer_of, read_answer
from crewd_client.commands.board import Board, Row
from crewd_client.commands.lines import summary
from crewd_client.commands.terminal import clean, clean_block, span
from crewd_client.commands.views import LiveView
from crewd_client.v1.actor_pb2 import Actor
from crewd_client.v1.ask_event_pb2 import AskOpened, AskSettled
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, ASK_STATUS_OPEN, Ask, AskAnswer, AskOption
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_event_pb2 import LimitReached, RunBlocked, RunFinished, RunRecovered
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_CANCELLED,
    RUN_STATUS_COMPLETED,
    Run,
    RunResult,
)
from crewd_client.v1.task_event_pb2 import TasksAdded
from crewd_client.v1.task_pb2 import TASK_STATUS_COMPLETED, TASK_STATUS_RUNNING, Task
from tests.clients.support.crew import AtTerminal
from tests.clients.support.fake_daemon import ASK, RUN, FakeDaemon

OPTIONS = [AskOption(id="pg", label="Postgres"), AskOption(id="lite", label="SQLite")]


def an_ask(**kinds: int) -> Ask:
    allow_text = bool(kinds.get("allow_text"))
    choices = kinds.get("max_choices", 1)
    return Ask(
        id=ASK,
        task_id="build",
        status=ASK_STATUS_OPEN,
        question="Which \x1b]0;evil\x07database?",
        options=OPTIONS,
        allow_text=allow_text,
        max_choices=choices,
    )


async def ask_at(daemon: FakeDaemon) -> AtTerminal:
    """Follow a run whose task asks something, and see the question."""
    daemon.add_run(Run(title="a run"))
    await daemon.emit(Event(tasks_added=TasksAdded(tasks=[Task(id="build")])))
    daemon.tasks = [Task(id="build", status=TASK_STATUS_RUNNING)]
    terminal = await AtTerminal.start(daemon, "watch", RUN)
    await daemon.called("WatchRun")
    await daemon.emit(Event(ask_opened=AskOpened(ask=an_ask()), task_id="build"))
    await terminal.sees("? build: Which database?")
    await terminal.sees("2) SQLite (lite)")
    await terminal.sees("declines> ")
    return terminal


async def finish(daemon: FakeDaemon) -> None:
    daemon.runs[RUN].result.CopyFrom(RunResult(text="done\x1b[31m!"))
    await daemon.emit(Event(run_finished=RunFinished(), run_status=RUN_STATUS_COMPLETED))


async def test_an_ask_is_answered_in_place_and_the_table_goes_on(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)

    terminal.types("postgre\n")
    await terminal.sees("'postgre' is no option: 1 (pg), 2 (lite)")
    await terminal.sees("declines> ")
    terminal.types("2\n")
    assert (await daemon.called("AnswerAsk")).option_ids == ["lite"]
    await daemon.emit(Event(task_id="build", task_status=TASK_STATUS_COMPLETED))
    await terminal.sees("completed")
    await finish(daemon)
    await terminal.sees("done!")

    assert await terminal.ends() == 0


async def test_an_answer_from_elsewhere_releases_the_prompt(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)
    settled = AskSettled(
        ask_id=ASK, outcome=ASK_STATUS_ANSWERED, answer=AskAnswer(option_ids=["pg"])
    )

    terminal.types("half an ans")
    await daemon.emit(Event(ask_settled=settled, actor=Actor(name="bob")))
    await terminal.sees("  answered elsewhere by bob: pg")
    await finish(daemon)

    assert await terminal.ends() == 0
    assert daemon.requests("AnswerAsk") == []


async def test_what_was_half_typed_does_not_go_to_the_next_ask(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)
    settled = AskSettled(ask_id=ASK, outcome=ASK_STATUS_ANSWERED, answer=AskAnswer(text="x"))
    another = an_ask()
    another.id = "ask_cccccccccc"

    terminal.types("1 and more")
    await daemon.emit(Event(ask_settled=settled))
    await terminal.sees("answered elsewhere: x")
    terminal.types("more yet")
    await daemon.emit(Event(ask_opened=AskOpened(ask=another), task_id="build"))
    await terminal.sees("declines> ")
    terminal.types("2\n")

    assert (await daemon.called("AnswerAsk")).option_ids == ["lite"]
    await finish(daemon)
    assert await terminal.ends() == 0


async def test_an_answer_that_comes_too_late_is_told_who_was_first(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)
    ask = daemon.asks[ASK]
    ask.status = ASK_STATUS_ANSWERED
    ask.answered_by.name = "bob"
    ask.answer.option_ids.append("pg")

    terminal.types("2\n")
    await terminal.sees("  answered elsewhere by bob: pg")
    await finish(daemon)

    assert await terminal.ends() == 0


async def test_an_empty_line_leaves_the_ask_open(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)

    terminal.types("\n")
    await terminal.sees(f"crew answer {ASK}")
    await finish(daemon)

    assert await terminal.ends() == 0
    assert daemon.requests("AnswerAsk") == []


async def test_ctrl_c_at_the_prompt_leaves_and_twice_cancels(daemon: FakeDaemon) -> None:
    terminal = await ask_at(daemon)

    terminal.interrupt()
    await terminal.sees("cancels it")
    terminal.interrupt()
    await daemon.called("CancelRun")
    await daemon.emit(Event(run_finished=RunFinished(), run_status=RUN_STATUS_CANCELLED))

    assert await terminal.ends() == 4


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("1", AnswerAskRequest(ask_id=ASK, option_ids=["pg"])),
        (" LITE ", AnswerAskRequest(ask_id=ASK, option_ids=["lite"])),
        ("postgres", AnswerAskRequest(ask_id=ASK, option_ids=["pg"])),
        ("d", AnswerAskRequest(ask_id=ASK, decline=True)),
        ("", None),
        ("my own", AnswerAskRequest(ask_id=ASK, text="my own")),
    ],
)
def test_what_is_typed_is_an_option_a_text_or_nothing(
    typed: str, expected: AnswerAskRequest | None
) -> None:
    assert answer_of(an_ask(allow_text=1), typed) == expected


def test_several_options_may_be_chosen_where_that_is_allowed() -> None:
    assert answer_of(an_ask(max_choices=2), "2, pg") == AnswerAskRequest(
        ask_id=ASK, option_ids=["lite", "pg"]
    )
    with pytest.raises(NoAnswerError):
        answer_of(an_ask(), "2, pg")


def test_a_number_without_an_option_is_asked_again() -> None:
    with pytest.raises(NoAnswerError, match="'7' is no option"):
        answer_of(an_ask(allow_text=1), "7")


def test_a_table_with_little_room_says_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "12")
    board = Board(title="a title that is longer than the terminal is wide " * 3)
    board.rows = {f"{number:032}": Row(f"{number:032}", "") for number in range(300)}
    view = LiveView(board, RUN)

    view.close()

    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 60
    assert sum("queued  " in line for line in lines) == 200
    assert "300 queued; 100 not shown" in "".join(lines)


def test_an_option_called_d_is_not_a_refusal() -> None:
    ask = Ask(id=ASK, options=[AskOption(id="d")], max_choices=1)

    assert answer_of(ask, "d") == AnswerAskRequest(ask_id=ASK, option_ids=["d"])


@pytest.mark.parametrize(
    "nasty",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07red",
        "\x1b]8;;http://x\x1b\\red",
        "\x1bPpayload\x1b\\red",
        "\x9b2Jr\x00e\x07d",
        "r\u202eed",
        "red\x1b[",
    ],
)
def test_nothing_that_is_printed_steers_the_terminal(nasty: str) -> None:
    assert clean_block(nasty).replace("[", "") == "red"


def test_lines_stay_lines_only_where_they_may() -> None:
    assert clean_block("a\r\nb\tc") == "a\nb\tc"
    assert clean("a\r\nb\tc") == "a b c"
    assert clean_block("10 %\r20 %\r\x1b[1mdone\r\nnext") == "done\nnext"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0s"), (3.21, "3.2s"), (42.5, "42s"), (250, "4m10s"), (7500, "2h05m"), (3e5, "3d")],
)
def test_times_are_told_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("typed", "option_ids"),
    [
        ("1", ["pg"]),
        ("LITE", ["lite"]),
        (" postgres\n", ["pg"]),
        ("Neither", []),
        ("d", []),
        ("Yes", ["a"]),
        ("yes", ["b"]),
        ("YES", []),
    ],
)
@pytest.mark.parametrize("allow_text", [True, False])
def test_an_answer_is_read_as_at_the_prompt(
    typed: str, option_ids: list[str], *, allow_text: bool
) -> None:
    ask = an_ask(allow_text=allow_text)
    ask.options.extend([AskOption(id="a", label="Yes"), AskOption(id="b", label="yes")])

    answer = read_answer(ask, typed)

    assert list(answer.option_ids) == option_ids
    assert answer.text == ("" if option_ids else typed)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event(run_recovered=RunRecovered()), "a new daemon took the run over"),
        (Event(run_recovered=RunRecovered(lost=["a/1"])), "the host was lost: 1 attempt lost"),
        (
            Event(run_recovered=RunRecovered(lost=["a/1", "b/1"])),
            "the host was lost: 2 attempts lost",
        ),
        (
            Event(run_recovered=RunRecovered(adopted=["c/1"], lost=["a/1", "b/1"])),
            "a new daemon took the run over (1 adopted, 2 lost)",
        ),
        (
            Event(limit_reached=LimitReached(reason="max_duration", used=2_500_000, max=2_000_000)),
            "max_duration reached: 2.5s of 2.0s",
        ),
        (
            Event(limit_reached=LimitReached(reason="max_turns", used=3, max=3)),
            "max_turns reached: 3 of 3",
        ),
        (
            Event(run_finished=RunFinished(reason="cancelled"), run_status=RUN_STATUS_CANCELLED),
            "run cancelled",
        ),
        (
            Event(run_finished=RunFinished(reason="by ann"), run_status=RUN_STATUS_CANCELLED),
            "run cancelled: by ann",
        ),
        (Event(run_blocked=RunBlocked(reason="blocked")), "run blocked"),
        (Event(tasks_added=TasksAdded(tasks=[Task()])), "1 task added"),
    ],
)
def test_an_event_is_told_in_words(event: Event, text: str) -> None:
    assert summary(event) == text
