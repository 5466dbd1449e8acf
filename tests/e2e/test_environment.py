"""What a worker of a real daemon finds in its environment."""

from __future__ import annotations

from pathlib import Path

from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED, RUN_STATUS_FAILED
from crewd_client.v1.spec_pb2 import TaskSpec
from tests.support.daemon import Daemon
from tests.support.desk import Desk, retries, shell
from tests.support.places import a_daemon

OWN = {"CREWD_ATTEMPT", "CREWD_RUN_ID", "CREWD_TASK_ID", "CREWD_TASK_TOKEN", "CREWD_SOCKET"}
PASSED = {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "PATH", "TERM"}
OF_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}


def env_file(daemon: Daemon, text: str, mode: int = 0o600) -> Path:
    file = daemon.root / ".config" / "crewd" / "env"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode)
    file.write_text(text)
    file.chmod(mode)
    return file


async def seen(desk: Desk, run_id: str) -> dict[str, str]:
    """Return what the worker printed with `env`."""
    assert (await desk.ended(run_id)).status == RUN_STATUS_COMPLETED
    lines = (await desk.output(run_id, "a")).decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


async def test_a_worker_knows_its_task_and_nothing_of_the_daemons_own(daemon: Daemon) -> None:
    desk = await daemon.desk()
    given = {"CREWD_TASK_ID": "forged", "CREWD_ATTEMPT": "forged", "PLAIN": "given"}
    run_id = await desk.submit(shell("a", "env", env=given))

    found = await seen(desk, run_id)

    names = {name for name in found if not name.startswith("LC_")}
    assert names - PASSED - OF_THE_SHELL == OWN | {"PLAIN", "BOOK"}
    assert (found["CREWD_RUN_ID"], found["CREWD_TASK_ID"]) == (run_id, "a")
    assert found["CREWD_ATTEMPT"].endswith(f"/{run_id}/a/1")
    assert (found["PATH"], found["TERM"], found["PLAIN"]) == ("/usr/bin:/bin", "dumb", "given")


async def test_the_env_file_is_read_anew_at_each_start(daemon: Daemon) -> None:
    desk = await daemon.desk()
    task = shell("a", "env")
    task.env_from.append("DEPLOY_NAME")
    for value in ("first", "second"):
        env_file(daemon, f"export DEPLOY_NAME='{value}'\n")
        assert (await seen(desk, await desk.submit(task)))["DEPLOY_NAME"] == value


async def test_a_variable_that_cannot_be_had_fails_the_task_by_name(daemon: Daemon) -> None:
    desk = await daemon.desk()
    task = shell("a", "env")
    task.env_from.append("DEPLOY_NAME")
    file = env_file(daemon, "DEPLOY_NAME=x\n", mode=0o644)
    for text, told in (
        ("DEPLOY_NAME=x\n", f"chmod 600 {file}"),
        ("OTHER=x\n", "env_from names DEPLOY_NAME"),
        ("OTHER\n", f"{file} line 1 is no NAME=value"),
    ):
        file.write_text(text)
        run_id = await desk.submit(task)
        assert (await desk.ended(run_id)).status == RUN_STATUS_FAILED
        ended = (await desk.task(run_id, "a")).attempts
        assert len(ended) == 1
        assert told in ended[0].message
        file.chmod(0o600)


async def test_an_agents_program_is_offered_the_keys_of_its_provider_and_no_others() -> None:
    async with a_daemon() as daemon:
        daemon.env |= {"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "OTHER_KEY": "k3"}
        await daemon.start()
        env_file(daemon, "ANTHROPIC_API_KEY=k4\n")
        desk = await daemon.desk()
        program = desk.root / "agent"
        program.write_text('#!/bin/sh\nenv >env.txt\nprintf "%s\\n" "$@" >args.txt\nexit 1\n')
        program.chmod(0o700)
        task = TaskSpec(id="a", adapter="pi", command=["./agent", "first"], prompt="work")
        task.model = "anthropic/claude"

        run_id = await desk.submit(task, retry=retries(1))

        assert (await desk.ended(run_id)).status == RUN_STATUS_FAILED
        found = (desk.root / "env.txt").read_text().splitlines()
        arguments = (desk.root / "args.txt").read_text().splitlines()
        assert "ANTHROPIC_API_KEY=k4" in found
        assert [line for line in found if line.startswith(("OPENAI_", "OTHER_"))] == []
        assert arguments[:3] == ["first", "--mode", "rpc"]
