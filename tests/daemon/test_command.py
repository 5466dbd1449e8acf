from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

import pytest

from crewd.cli import main
from crewd.ensure import ensure
from crewd.instance import operator_token
from crewd.refusal import Exit, Refusal
from tests.daemon.command import Home


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Type = Callable[..., Done]


@pytest.fixture
def crewd(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Run the command within this process, which is quicker."""

    def typed(*arguments: str, **variables: str) -> Done:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name not in home.env]:
                patch.delenv(name)
            for name, value in {**home.env, **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["crewd", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return typed


def test_where_names_each_place_and_the_rule_that_chose_it(home: Home, crewd: Type) -> None:
    done = crewd("where", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["state_dir"] == {"path": str(home.state_dir), "rule": "default"}
    assert found["socket"] == {
        "path": str(home.runtime / "crewd" / "crewd.sock"),
        "rule": "default",
    }
    assert found["token"]["found"] is False
    assert found["daemon"] is None


def test_the_state_directory_may_be_named_before_and_after_the_command(
    home: Home, crewd: Type
) -> None:
    named = str(home.another("named"))
    before = crewd("--state-dir", named, "where", "--json")
    after = crewd("where", "--json", "--state-dir", named)
    assert json.loads(before.stdout) == json.loads(after.stdout)
    assert json.loads(after.stdout)["state_dir"] == {"path": named, "rule": "--state-dir"}


def test_where_prints_one_path_alone_for_scripts(home: Home, crewd: Type) -> None:
    assert crewd("where", "socket").stdout == f"{home.runtime / 'crewd' / 'crewd.sock'}\n"
    assert crewd("where", "state-dir").stdout == f"{home.state_dir}\n"


def test_where_loads_neither_grpc_nor_asyncio() -> None:
    loaded = "import sys, crewd.cli.where; print(*{'grpc', 'asyncio'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_without_a_daemon_each_command_says_so_by_its_code(crewd: Type) -> None:
    asked = ("status", "token", "drain", "stop")
    assert [crewd(name).returncode for name in asked] == [3, 5, 5, 0]


def test_status_without_a_daemon_tells_how_to_start_one(home: Home, crewd: Type) -> None:
    done = crewd("status")
    assert done.stdout == f"not running: no daemon for {home.state_dir}\nstart it: crewd ensure\n"
    assert json.loads(crewd("status", "--json").stdout)["status"] == "not_running"


def test_the_token_is_printed_alone(home: Home, crewd: Type) -> None:
    home.paths.make()
    token = operator_token(home.paths.token)
    assert crewd("token").stdout == f"{token}\n"


@pytest.mark.parametrize(
    "typed",
    [
        ("serve", "--host", "maybe"),
        ("serve", "--max-workers", "0"),
        ("drain", "--timeout", "soon"),
        ("fly",),
    ],
)
def test_what_is_typed_wrong_is_told_without_a_traceback(
    home: Home, crewd: Type, typed: tuple[str, ...]
) -> None:
    done = crewd(*typed)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not home.state_dir.exists()


def test_an_error_has_a_hint_and_is_json_if_json_was_asked_for(home: Home, crewd: Type) -> None:
    home.state_dir.mkdir(parents=True)
    home.state_dir.chmod(0o777)
    done = crewd("ensure")
    assert done.returncode == 6
    assert done.stderr.startswith("error: the state directory is not safe")
    assert f"\nhint: if it is yours: chmod 700 {home.state_dir}" in done.stderr
    error = json.loads(crewd("ensure", "--json").stderr)["error"]
    assert error["message"].startswith("the state directory is not safe")


def test_a_worker_must_not_start_a_daemon(crewd: Type) -> None:
    done = crewd("ensure", CREWD_TASK_TOKEN="crewt_x")  # noqa: S106 - no secret
    assert done.returncode == 5
    assert "a worker must not start one" in done.stderr


def test_a_daemon_that_hangs_is_named_with_the_way_out(
    home: Home, crewd: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.ensure()
    pid = home.pid()
    os.kill(pid, signal.SIGSTOP)
    for place in ("crewd.cli.status", "crewd.contact"):
        monkeypatch.setattr(f"{place}.ANSWER_TIMEOUT", timedelta(seconds=0.3))

    done = crewd("status")
    with pytest.raises(Refusal, match=f"pid {pid} does not answer") as refused:
        ensure(home.env, timeout=timedelta(seconds=0.1))

    assert done.returncode == Exit.NOT_READY
    assert f"pid {pid} does not answer" in done.stdout
    assert f"kill -9 {pid}; crewd ensure" in done.stdout
    assert f"kill -9 {pid}; crewd ensure" in refused.value.hint
    assert refused.value.exit_code == Exit.NO_DAEMON
