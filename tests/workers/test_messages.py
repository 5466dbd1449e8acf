from __future__ import annotations

import json

import pytest

from crewd.core.messages import (
    DEPENDENCY_BYTES,
    answer_message,
    scaffold_text,
    steer_message,
    stop_message,
    task_message,
)
from crewd.core.model import (
    Actor,
    Answer,
    Ask,
    AskOption,
    Attempt,
    Result,
    Run,
    Task,
)
from crewd.core.spec import RunSpec, TaskSpec
from crewd.core.units import SECOND, Instant
from crewd.core.words import ActorKind, AskStatus, Cause, TaskStatus

RUN = Run(id="run_a", spec=RunSpec(goal="ship “it”", cwd="/w"))
SPEC = TaskSpec(id="report", title="Report", role="writer", prompt="Write.", cwd="/w/sub")
NOON = Instant(1_893_499_200_000_000)


def a_task(spec: TaskSpec = SPEC, *, result: Result | None = None) -> Task:
    return Task(
        run_id="run_a",
        id=spec.id,
        position=0,
        spec=spec,
        status=TaskStatus.COMPLETED,
        result=result,
    )


def an_ask(status: AskStatus, answer: Answer | None = None) -> Ask:
    options = (AskOption(id="a", label="Apples"), AskOption(id="b", label="Bananas"))
    ask = Ask(id="ask_1", run_id="run_a", task_id="t", attempt=1, worker_ref="q1", options=options)
    ask.status, ask.answer = status, answer
    ask.answered_by = Actor(ActorKind.DAEMON, "ann") if answer else None
    return ask


def test_a_task_message_says_what_to_do_and_nothing_that_is_not_there() -> None:
    text = task_message(RUN, a_task(), 1, [], None, None)

    assert "\n" not in text
    assert "“it”" in text
    assert json.loads(text) == {
        "type": "task",
        "protocol": 1,
        "run_id": "run_a",
        "task_id": "report",
        "attempt": 1,
        "role": "writer",
        "title": "Report",
        "goal": "ship “it”",
        "prompt": "Write.",
        "cwd": "/w/sub",
        "dependencies": [],
    }


def test_a_retry_knows_its_deadline_and_why_it_is_one() -> None:
    before = Attempt(run_id="run_a", task_id="report", number=1, cause=Cause.EXIT, message="code 3")
    message = json.loads(task_message(RUN, a_task(), 2, [], before, NOON))

    assert message["deadline"] == "2030-01-01T12:00:00Z"
    assert message["previous"] == {"attempt": 1, "cause": "exit", "message": "code 3"}


@pytest.mark.parametrize(
    ("deadline", "text"),
    [
        (Instant(NOON + 1_500), "2030-01-01T12:00:00.001500Z"),
        (Instant(2**62), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_deadline_is_rfc_3339(deadline: Instant, text: str) -> None:
    assert json.loads(task_message(RUN, a_task(), 1, [], None, deadline))["deadline"] == text


def test_dependencies_hand_on_their_text_and_data() -> None:
    build = a_task(TaskSpec(id="build"), result=Result(text="ok\n", data_json='{"n":1.10}'))
    text = task_message(RUN, a_task(), 1, [build, a_task(TaskSpec(id="lint"))], None, None)

    assert '"data":{"n":1.10}' in text
    assert json.loads(text)["dependencies"] == [
        {
            "task_id": "build",
            "title": "",
            "status": "completed",
            "text": "ok\n",
            "data": {"n": 1.1},
        },
        {"task_id": "lint", "title": "", "status": "completed", "text": ""},
    ]


def test_many_dependencies_share_one_budget() -> None:
    big = Result(text="é" * 32_000, data_json='{"n":1}')
    needed = [a_task(TaskSpec(id=f"t{n}"), result=big) for n in range(100)]
    message = json.loads(task_message(RUN, a_task(), 1, needed, None, None))

    texts = [d["text"] for d in message["dependencies"]]
    assert sum(len(t.encode()) for t in texts) <= DEPENDENCY_BYTES
    assert set(texts) == {"é" * (DEPENDENCY_BYTES // 100 // 2)}
    assert all("data" not in d for d in message["dependencies"])


@pytest.mark.parametrize(
    ("status", "answer", "fields"),
    [
        (AskStatus.ANSWERED, Answer(text="42"), {"text": "42"}),
        (AskStatus.ANSWERED, Answer(option_ids=("b",)), {"text": "Bananas", "options": ["b"]}),
        (
            AskStatus.ANSWERED,
            Answer(option_ids=("a", "b"), text="ripe"),
            {"text": "ripe", "options": ["a", "b"]},
        ),
        (AskStatus.DECLINED, Answer(note="not now"), {"text": "not now"}),
    ],
)
def test_an_answer_carries_the_workers_own_id(
    status: AskStatus, answer: Answer, fields: dict[str, object]
) -> None:
    assert json.loads(answer_message(an_ask(status, answer))) == {
        "type": "answer",
        "id": "q1",
        "outcome": status,
        "answered_by": "ann",
        **fields,
    }


def test_an_ask_nobody_answered_says_only_how_it_ended() -> None:
    assert json.loads(answer_message(an_ask(AskStatus.TIMED_OUT))) == {
        "type": "answer",
        "id": "q1",
        "outcome": "timed_out",
        "text": "",
        "answered_by": "",
    }


def test_steer_and_stop_are_one_line_each() -> None:
    assert steer_message("steer_1", "left\n") == '{"type":"steer","id":"steer_1","text":"left\\n"}'
    assert json.loads(stop_message("timeout", SECOND)) == {
        "type": "stop",
        "reason": "timeout",
        "grace_s": 1,
    }


def test_a_scaffold_result_says_that_nothing_ran() -> None:
    spec = TaskSpec(id="x", command=("make", "all"), role="builder", prompt="Build.", cwd="/w")

    assert scaffold_text(a_task(spec)).splitlines() == [
        "Nothing was executed: this task has the scaffold adapter, which only tests a plan.",
        'It would have run: ["make", "all"]',
        "In the directory: /w",
        "In the role: builder",
        "With the prompt:",
        "Build.",
    ]
