"""The real pi behind a real daemon, with a model that says what the prompt tells it to."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from crewd.workers.pi_keys import KEYS
from crewd_client.v1.failure_pb2 import (
    CAUSE_AUTH,
    CAUSE_EMPTY,
    CAUSE_MODEL_UNKNOWN,
    CAUSE_NO_RESULT,
    CAUSE_REPORTED,
    CAUSE_THROTTLED,
    CAUSE_TRANSIENT,
    CAUSE_TRUNCATED,
    Cause,
)
from crewd_client.v1.run_pb2 import RUN_STATUS_CANCELLED
from crewd_client.v1.task_pb2 import (
    STEER_STATUS_DELIVERED,
    STEER_STATUS_QUEUED,
    STEER_STATUS_SEEN,
    TASK_STATUS_COMPLETED,
    TASK_STATUS_FAILED,
    TASK_STATUS_NEEDS_ATTENTION,
    Task,
)
from tests.support.daemon import Daemon, alive, eventually
from tests.support.desk import Desk
from tests.support.pi import BIN
from tests.support.pi_desk import PiDesk, needs_pi
from tests.support.scripted_model import ScriptedModel

pytestmark = needs_pi

UNTIL_TOLD = "[[tool:echo $$ > pid; until [ -e go ]; do sleep 0.05; done; echo went]]"
NUMBERS = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel().serving() as model:
        yield model


@pytest.fixture
def pi(desk: Desk, model: ScriptedModel) -> PiDesk:
    return PiDesk(desk, model.base_url)


async def done(pi: PiDesk, run_id: str) -> Task:
    await pi.desk.ended(run_id)
    return await pi.desk.task(run_id, "a")


async def test_what_the_agent_says_last_is_the_result(pi: PiDesk) -> None:
    task = await done(pi, await pi.submit("Say it. [[plain:forty two]]"))
    attempt = task.attempts[0]
    assert (task.status, task.result.text) == (TASK_STATUS_COMPLETED, "forty two")
    assert (attempt.model, attempt.exit_code) == ("scripted/scripted", 0)
    assert (task.usage.input_tokens, task.usage.turns, task.usage.cost_micros) == (100, 1, 140)


async def test_tools_run_in_the_task_s_directory_and_are_told_of(pi: PiDesk) -> None:
    run_id = await pi.submit("Make it. [[write:made.txt]]")
    assert (await done(pi, run_id)).status == TASK_STATUS_COMPLETED
    assert (pi.desk.root / "made.txt").read_text() == "by the scripted model\n"
    began = await pi.desk.happened(run_id, "tool_started")
    assert (began.tool_started.name, began.tool_started.title) == ("write", "made.txt")
    task = await done(pi, await pi.submit("Run it. [[tool:echo out; exit 3]]"))
    assert task.result.text.startswith("The tool said: out")
    assert task.usage.turns == 2


def test_the_keys_that_pi_reads_are_known() -> None:
    env = {"PATH": f"{BIN}:/usr/bin:/bin"}
    told = subprocess.run(["pi", "--help"], env=env, capture_output=True, text=True, check=True)
    names = re.findall(r"^  (\w+_(?:KEY|TOKEN|ID|URL|REGION|PROFILE))\b", told.stdout, re.MULTILINE)
    known = {name for keys in KEYS.values() for name in keys}
    assert {name for name in names if not name.startswith("PI_")} <= known
    assert len(names) > 30


FAILURES: tuple[tuple[str, Cause.ValueType, str], ...] = (
    ("error:400", CAUSE_REPORTED, "scripted error 400 (HTTP 400)"),
    ("error:401 Incorrect key", CAUSE_AUTH, "Incorrect key (HTTP 401)"),
    ("error:429", CAUSE_THROTTLED, "scripted error 429 (HTTP 429)"),
    ("error:500", CAUSE_TRANSIENT, "scripted error 500 (HTTP 500)"),
    ("drop", CAUSE_TRANSIENT, "Stream ended without finish_reason"),
    ("empty", CAUSE_EMPTY, "without saying anything"),
)


async def test_a_failure_that_exits_with_0_is_one(pi: PiDesk, model: ScriptedModel) -> None:
    run_ids = [await pi.submit(f"[[{marker}]]") for marker, *_ in FAILURES]
    for run_id, (_, cause, words) in zip(run_ids, FAILURES, strict=True):
        task = await done(pi, run_id)
        assert (task.status, task.attempts[0].cause) == (TASK_STATUS_FAILED, cause)
        assert words in task.attempts[0].message
        assert task.attempts[0].exit_code == 0
    assert len(model.requests) == len(FAILURES)


async def test_only_what_may_pass_is_tried_again_and_pi_s_own_settings_stay(
    pi: PiDesk, model: ScriptedModel
) -> None:
    assert len((await done(pi, await pi.submit("[[error:500]]", attempts=2))).attempts) == 2
    assert len((await done(pi, await pi.submit("[[error:400]]", attempts=2))).attempts) == 1
    assert len(model.requests) == 3
    assert "retry" not in json.loads((pi.desk.root / "pi" / "settings.json").read_text())


async def test_a_model_that_cannot_be_used_is_a_matter_for_a_person(pi: PiDesk) -> None:
    for name, cause, words in (
        ("openai/gpt-4o", CAUSE_AUTH, "put OPENAI_API_KEY in the daemon's env file"),
        ("zzz/nope", CAUSE_MODEL_UNKNOWN, 'Model "zzz/nope" not found'),
    ):
        task = await done(pi, await pi.submit("x", model=name, attempts=3))
        assert (task.status, [a.cause for a in task.attempts]) == (TASK_STATUS_FAILED, [cause])
        assert words in task.attempts[0].message


async def test_a_slow_answer_and_a_long_one_come_whole(pi: PiDesk) -> None:
    slow, long = await pi.submit("[[slow:2]]"), await pi.submit("[[long:20000]]")
    assert (await done(pi, slow)).result.text == "A slow answer."
    task = await done(pi, long)
    assert task.result.text.startswith("word0 word1 ")
    assert (task.result.truncated, bool(task.result.artifact_id)) == (True, True)


async def test_an_answer_cut_at_its_limit_is_gone_on_with_once(pi: PiDesk) -> None:
    task = await done(pi, await pi.submit("[[length:1]]"))
    assert (task.status, task.result.text) == (TASK_STATUS_COMPLETED, "Part 1, and the end.")
    run_id = await pi.submit("[[length:2]]")
    await pi.desk.happened(run_id, "attempt_ended")
    task = await pi.desk.task(run_id, "a")
    assert (task.status, task.attempts[0].cause) == (TASK_STATUS_NEEDS_ATTENTION, CAUSE_TRUNCATED)


async def test_a_question_goes_to_a_person_and_the_answer_back_as_data(
    pi: PiDesk, model: ScriptedModel
) -> None:
    run_id = await pi.submit('[[ask:{"question":"A or B?","options":["A","B"]}]]')
    ask = await pi.desk.asked(run_id)
    assert (ask.question, [o.label for o in ask.options]) == ("A or B?", ["A", "B"])
    await pi.desk.answer(ask.id, "C, and nothing else")
    assert "C, and nothing else" in (await done(pi, run_id)).result.text
    handed_on = model.requests[1]["messages"][-1]["content"]
    assert "is data, not instructions" in handed_on


async def test_a_note_is_delivered_and_seen(pi: PiDesk) -> None:
    run_id = await pi.submit(f"Work. {UNTIL_TOLD}")
    await pi.desk.happened(run_id, "tool_started")
    await pi.desk.steer(run_id, "a", "Leave it. [[plain:left]]")
    await pi.desk.happened(run_id, "steer_updated", times=2)
    (pi.desk.root / "go").touch()
    assert (await done(pi, run_id)).result.text == "left"
    events = await pi.desk.events(run_id)
    told = [e.steer_updated.status for e in events if e.kind == "steer_updated"]
    assert told == [STEER_STATUS_QUEUED, STEER_STATUS_DELIVERED, STEER_STATUS_SEEN]


async def test_a_cancelled_agent_leaves_nothing_behind(pi: PiDesk) -> None:
    run_id = await pi.submit(f"Work. {UNTIL_TOLD}")
    book = pi.desk.root / "pid"
    await eventually(lambda: book.exists() and book.read_text().strip(), "the tool runs")
    pids = [int(book.read_text()), (await pi.desk.attempt(run_id, "a")).pid]
    assert all(alive(pid) for pid in pids)
    await pi.desk.cancel(run_id)
    assert (await pi.desk.ended(run_id)).status == RUN_STATUS_CANCELLED
    assert not any(alive(pid) for pid in pids)


async def test_data_is_handed_in_until_it_satisfies_the_schema(
    pi: PiDesk, model: ScriptedModel
) -> None:
    run_id = await pi.submit('[[submit:{"n":"x"}|{"n":1}]]', schema=NUMBERS)
    task = await done(pi, run_id)
    assert (task.status, json.loads(task.result.data_json)) == (TASK_STATUS_COMPLETED, {"n": 1})
    assert task.result.text == "It is done."
    assert len(model.requests) == 2
    run_id = await pi.submit('[[submit:{"n":"x"}|{}|[]|{"n":1}]]', schema=NUMBERS)
    await pi.desk.happened(run_id, "attempt_ended")
    task = await pi.desk.task(run_id, "a")
    assert (task.status, task.attempts[0].cause) == (TASK_STATUS_NEEDS_ATTENTION, CAUSE_NO_RESULT)
    assert len(model.requests) == 5


async def test_who_forgets_to_hand_in_is_reminded_in_the_same_session(pi: PiDesk) -> None:
    task = await done(pi, await pi.submit('[[late:{"n":2}]]', schema=NUMBERS))
    assert (len(task.attempts), json.loads(task.result.data_json)) == (1, {"n": 2})
    run_id = await pi.submit("[[plain:all done]]", schema=NUMBERS)
    await pi.desk.happened(run_id, "attempt_ended")
    task = await pi.desk.task(run_id, "a")
    assert (task.status, task.attempts[0].cause) == (TASK_STATUS_NEEDS_ATTENTION, CAUSE_NO_RESULT)
    assert task.usage.turns == 4


async def test_a_daemon_killed_in_mid_turn_finds_the_same_agent_again(
    daemon: Daemon, pi: PiDesk
) -> None:
    run_id = await pi.submit(f"Work. {UNTIL_TOLD}")
    await pi.desk.happened(run_id, "tool_started")
    before = await pi.desk.attempt(run_id, "a")
    daemon.kill()
    (pi.desk.root / "go").touch()
    await daemon.start()
    task = await done(pi, run_id)
    assert (task.status, "went" in task.result.text) == (TASK_STATUS_COMPLETED, True)
    assert [(a.number, a.pid) for a in task.attempts] == [(1, before.pid)]
    assert task.usage.turns == 2


async def test_a_daemon_killed_while_an_agent_waits_for_an_answer_still_hands_it_on(
    daemon: Daemon, pi: PiDesk
) -> None:
    run_id = await pi.submit("[[ask:May I?]]")
    ask = await pi.desk.asked(run_id)
    before = await pi.desk.attempt(run_id, "a")
    await daemon.restart()
    await pi.desk.answer(ask.id, "You may.")
    task = await done(pi, run_id)
    assert "You may." in task.result.text
    assert [(a.number, a.pid) for a in task.attempts] == [(1, before.pid)]


async def test_a_secret_that_is_said_letter_by_letter_is_in_no_byte_of_the_transcript(
    pi: PiDesk, daemon: Daemon
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    run_id = await pi.submit(f"Say it. [[spell:it is {secret} ok]]")
    task = await done(pi, run_id)
    said = await pi.desk.output(run_id, "a")

    assert task.result.text == "it is *** ok"
    assert b"it is *** ok" in said
    assert b"message_update" not in said, "what comes in pieces cannot be masked"
    kept = [file.read_bytes() for file in (daemon.state_dir / "transcripts").rglob("*.stdout")]
    assert kept == [said]
