"""The exit codes of `crew`, with a real daemon behind it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.desk import WORKERS, Desk

DONE, FAILED, USAGE, BLOCKED, CANCELLED, REFUSED, TIMED_OUT = 0, 1, 2, 3, 4, 6, 124
WORKER = f"[python3, -I, -S, {WORKERS / 'worker.py'}"


def a_file(root: Path, name: str, *tasks: str) -> str:
    """Write a run.yaml with these tasks, each a line of YAML."""
    path = root / name
    env = f"env: {{BOOK: {root / 'book'}}}"
    listed = [f"  - {{{task}, {env}}}" for task in tasks]
    path.write_text("\n".join(["goal: a test", "retry: {max_attempts: 1}", "tasks:", *listed]))
    return str(path)


async def test_the_exit_code_of_run_tells_how_it_ended(daemon: Daemon) -> None:
    root = daemon.root
    for name, code, tasks in (
        ("good", DONE, ["id: a, command: [echo, out]"]),
        ("bad", FAILED, ["id: a, command: [sh, -c, exit 7]"]),
        ("mute", BLOCKED, [f"id: a, adapter: jsonl, command: {WORKER}]"]),
        ("typo", USAGE, ["id: a, comand: [echo, out]"]),
        ("circle", USAGE, ["id: a, command: [echo], depends_on: [a]"]),
        ("missing", REFUSED, ["id: a, command: [no-such-program]"]),
    ):
        ended, out, err = await daemon.crew("run", "--file", a_file(root, name, *tasks))
        assert ended == code, (name, out, err)
        assert "Traceback" not in err
    code, _, err = await daemon.crew("run", "--file", str(root / "typo"))
    assert "typo:4: unknown key 'comand', did you mean 'command'?" in err


async def test_a_blocked_run_is_resolved_and_a_failed_one_retried(daemon: Daemon) -> None:
    mute = a_file(daemon.root, "mute", f"id: a, adapter: jsonl, command: {WORKER}]")
    run_id = (await daemon.crew("run", "--detach", "--file", mute))[1].strip()
    assert (await daemon.crew("wait", run_id))[0] == BLOCKED
    assert (await daemon.crew("resolve", run_id, "a", "accept", "seen"))[0] == DONE
    assert (await daemon.crew("wait", run_id))[0] == DONE
    assert (await daemon.crew("resolve", run_id, "a", "fail"))[0] == REFUSED
    until_marked = a_file(daemon.root, "until", "id: a, command: [cat, mark]")
    run_id = (await daemon.crew("run", "--detach", "--file", until_marked))[1].strip()
    assert (await daemon.crew("wait", run_id))[0] == FAILED
    (daemon.root / "mark").write_text("marked\n")
    assert (await daemon.crew("retry", run_id))[0] == DONE
    assert (await daemon.crew("wait", run_id))[0] == DONE
    assert (await daemon.crew("logs", run_id, "a"))[1] == "marked\n"
    code, out, _ = await daemon.crew("rm", run_id)
    assert (code, run_id in out) == (DONE, True)
    assert (await daemon.crew("show", run_id))[0] == REFUSED


async def test_a_run_that_asks_is_waited_for_answered_and_cancelled(
    daemon: Daemon, desk: Desk
) -> None:
    asks = a_file(
        daemon.root, "asks", f"id: a, adapter: jsonl, command: {WORKER}, ask q, ask r, result ok]"
    )
    run_id = (await daemon.crew("run", "--detach", "--file", asks))[1].strip()
    ask = await desk.asked(run_id)
    assert (await daemon.crew("wait", run_id, "--timeout", "0.2"))[0] == TIMED_OUT
    listed = json.loads((await daemon.crew("asks", "--json"))[1])
    assert (listed["id"], listed["question"]) == (ask.id, "q?")
    assert (await daemon.crew("answer", ask.id, "yes"))[0] == DONE
    code, _, err = await daemon.crew("answer", ask.id, "no", "--json")
    assert (code, json.loads(err)["error"]["reason"]) == (REFUSED, "ASK_SETTLED")
    assert (await daemon.crew("steer", run_id, "a", "left"))[0] == REFUSED
    assert (await daemon.crew("cancel", run_id))[0] == DONE
    assert (await daemon.crew("wait", run_id))[0] == CANCELLED
    shown = json.loads((await daemon.crew("show", run_id, "--json"))[1])
    assert (shown["run"]["status"], shown["tasks"][0]["status"]) == ("cancelled", "cancelled")
    assert (await daemon.crew("show", "run_none"))[0] in {USAGE, REFUSED}
