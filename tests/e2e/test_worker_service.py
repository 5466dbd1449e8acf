"""Workers that call the daemon themselves, with the token of their attempt."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from crewd_client import AccessError, Worker
from crewd_client.v1.ask_pb2 import DELIVERY_DELIVERED
from crewd_client.v1.ask_service_pb2 import GetAskRequest
from crewd_client.v1.run_artifact_pb2 import ListArtifactsRequest
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED, Run
from crewd_client.v1.spec_pb2 import TaskSpec
from tests.support.daemon import Daemon, eventually
from tests.support.desk import WORKERS, Desk, retries, shell

BIN = Path(sys.executable).parent
ASK = 'crew ask "Deploy now?" --option yes --option no=Later --text'


def asking(line: str = ASK) -> TaskSpec:
    """A shell script that has `crew` in its PATH."""
    return shell("a", line, env={"PATH": f"{BIN}:/usr/bin:/bin"})


async def completed(desk: Desk, run_id: str, output: str) -> None:
    run: Run = await desk.ended(run_id)
    assert (run.status, await desk.output(run_id, "a")) == (RUN_STATUS_COMPLETED, output.encode())


async def test_a_script_asks_and_goes_on_with_the_answer(desk: Desk) -> None:
    run_id = await desk.submit(asking(f'answer=$({ASK}) && echo "deploy: $answer"'))
    ask = await desk.asked(run_id)
    assert [(option.id, option.label) for option in ask.options] == [
        ("yes", "yes"),
        ("no", "Later"),
    ]
    await desk.answer(ask.id, "on Monday")
    await completed(desk, run_id, "deploy: on Monday\n")
    got = (await desk.client.asks.GetAsk(GetAskRequest(ask_id=ask.id))).ask
    assert got.delivery == DELIVERY_DELIVERED


async def test_a_question_outlives_the_daemon_and_is_answered_once(
    daemon: Daemon, desk: Desk
) -> None:
    run_id = await desk.submit(asking())
    ask = await desk.asked(run_id)
    await daemon.restart()
    assert [each.id for each in await desk.open_asks(run_id)] == [ask.id]
    await daemon.restart()
    await desk.answer(ask.id, "yes")
    await completed(desk, run_id, "yes\n")
    counts = await desk.counts(run_id)
    assert (counts["ask_opened"], counts["ask_delivered"]) == (1, 1)


async def test_an_answer_given_while_the_daemon_dies_arrives(daemon: Daemon, desk: Desk) -> None:
    run_id = await desk.submit(asking())
    ask = await desk.asked(run_id)
    await desk.answer(ask.id, "yes")
    await daemon.restart()
    await completed(desk, run_id, "yes\n")


async def test_the_next_attempt_gets_the_question_of_the_one_before(desk: Desk) -> None:
    run_id = await desk.submit(asking(f"{ASK}; true"), retry=retries(2))
    ask = await desk.asked(run_id)
    os.kill((await desk.attempt(run_id, "a")).pid, signal.SIGKILL)
    await desk.happened(run_id, "attempt_started", attempt=2)
    await eventually(lambda: attached(desk, ask.id))
    await desk.answer(ask.id, "yes")
    await completed(desk, run_id, "yes\n")
    assert (await desk.counts(run_id))["ask_opened"] == 1


async def attached(desk: Desk, ask_id: str) -> bool:
    return (await desk.client.asks.GetAsk(GetAskRequest(ask_id=ask_id))).ask.attempt == 2


async def test_a_question_that_nobody_answers_in_time_is_told_so(desk: Desk) -> None:
    run_id = await desk.submit(asking("crew ask Now? --timeout 0.1s; echo $?"))
    await completed(desk, run_id, "124\n")


async def test_a_worker_may_not_command_the_daemon(desk: Desk) -> None:
    line = "crew cancel $CREWD_RUN_ID 2>&1; echo $?; crew run --file - < /dev/null; echo $?"
    run_id = await desk.submit(asking(line))
    await desk.ended(run_id)
    said = (await desk.output(run_id, "a")).decode().splitlines()
    assert said[0].startswith("error: a task's token does not allow /crewd.v1.RunService/")
    assert said[1] == "6"


async def test_a_plain_command_hands_in_with_the_kit(desk: Desk) -> None:
    script = WORKERS / "kit.py"
    task = asking(f"{sys.executable} {script}")
    task.output.schema.update({"type": "object", "required": ["count"]})
    run_id = await desk.submit(task)
    ask = await desk.asked(run_id)
    task_now = (await desk.tasks(run_id))["a"]
    assert (task_now.progress.step, task_now.progress.percent) == ("ask", 10)
    await desk.answer(ask.id, "2")
    await desk.ended(run_id)
    result = (await desk.tasks(run_id))["a"].result
    assert (result.text, result.data_json) == ("chose 2", '{"count": 2}')
    assert b'is not of type "object"' in await desk.output(run_id, "a")
    listed = await desk.client.runs.ListArtifacts(ListArtifactsRequest(run_id=run_id))
    assert "answer.txt" in [artifact.name for artifact in listed.artifacts]


async def test_a_token_is_written_nowhere_and_ends_with_its_attempt(
    daemon: Daemon, desk: Desk
) -> None:
    secret = desk.root / "secret"
    run_id = await desk.submit(asking(f"echo $CREWD_TASK_TOKEN > {secret}; {ASK}"))
    ask = await desk.asked(run_id)
    token = secret.read_text().strip()
    await daemon.restart()
    await desk.answer(ask.id, "yes")
    await completed(desk, run_id, "yes\n")
    files = [path for path in daemon.state_dir.rglob("*") if path.is_file()]
    holders = [path for path in [*files, daemon.log] if token.encode() in path.read_bytes()]
    assert (token.startswith("crewt_"), holders) == (True, [])
    env = {"CREWD_TASK_TOKEN": token, "CREWD_SOCKET": (await desk.server()).socket}
    async with await Worker.from_environment(env) as worker:
        with pytest.raises(AccessError, match="attempt 1 of task a has ended"):
            await worker.progress("still here")
        with pytest.raises(AccessError, match="has ended"):
            await worker.wait(ask.id)
