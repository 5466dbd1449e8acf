"""The client is of use without the daemon's package: to talk to a daemon that runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import crewd
from tests.packaging.index import PATIENCE, Venv
from tests.support.daemon import Daemon

RUN = "goal: try it\ntasks:\n- {id: a, command: [echo, done]}\n"


pytestmark = pytest.mark.timeout(PATIENCE)


@pytest.fixture(scope="module")
def client(index: None, client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    del index
    venv = Venv(tmp_path_factory.mktemp("client"))
    venv.install("--no-compile", client_wheel)
    return venv


def test_it_brings_crew_and_no_daemon(client: Venv, tmp_path: Path) -> None:
    told = client.run("crew", "--version", home=tmp_path)
    assert (told.returncode, told.stdout) == (0, f"crew {crewd.__version__}\n")
    assert not (client.bin / "crewd").exists()
    found = client.run("python", "-c", "import crewd_client, crewd", home=tmp_path)
    assert "No module named 'crewd'" in found.stderr


def test_without_a_daemon_it_says_what_to_install(client: Venv, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    done = client.run("crew", "run", "--file", "run.yaml", home=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    state_dir = tmp_path / ".local" / "state" / "crewd"
    assert done.stderr == (
        f"error: no daemon runs for {state_dir}, and there is no `crewd` to start\n"
        "hint: install the daemon, crewd, beside this command, or put it into the PATH\n"
    )
    assert client.run("crew", "ls", home=tmp_path).returncode == 5


async def test_it_works_with_a_daemon_of_another_installation(client: Venv, daemon: Daemon) -> None:
    (daemon.root / "run.yaml").write_text(RUN)

    def crew(*arguments: str) -> str:
        where = ("--state-dir", str(daemon.state_dir))
        done = client.run("crew", *where, *arguments, home=daemon.root)
        assert done.returncode == 0, done.stderr
        return done.stdout

    ended = await asyncio.to_thread(crew, "run", "--file", "run.yaml", "--json")
    run = json.loads(ended.splitlines()[-1])["run"]
    assert run["status"] == "completed"
    assert await asyncio.to_thread(crew, "logs", run["id"], "a") == "done\n"
    assert "explorer" in await asyncio.to_thread(crew, "agents")
