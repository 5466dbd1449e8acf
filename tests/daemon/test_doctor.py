"""`crewd doctor` as a person types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from tests.daemon.command import Home

Found = dict[str, dict[str, Any]]


def examined(home: Home, *arguments: str, code: int = 0, **variables: str) -> Found:
    """Return the worst finding of each id."""
    done = home.crewd("doctor", "--json", *arguments, **variables)
    assert (done.returncode, done.stderr) == (code, "")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line.keys() == {"id", "severity", "message", "command", "details"} for line in lines)
    return {line["id"]: line for line in reversed(lines)}


def worse(found: Found) -> set[str]:
    return {id for id, line in found.items() if line["severity"] in {"error", "warning"}}  # noqa: A001


def test_without_a_daemon_there_is_nothing_wrong(home: Home) -> None:
    found = examined(home)
    assert worse(found) == set()
    assert found["daemon.running"]["severity"] == "info"
    assert found["daemon.running"]["command"] == "crewd ensure"
    assert "daemon.status" not in found
    assert not home.state_dir.exists()


def test_a_daemon_is_asked_for_what_only_it_knows(home: Home) -> None:
    home.ensure()
    found = examined(home, "--deep")
    assert worse(found) == set()
    well = ("daemon.running", "daemon.version", "daemon.status", "store.paused", "host.orphans")
    assert {found[name]["severity"] for name in (*well, "database.integrity")} == {"ok"}


def test_another_state_directory_may_be_named(home: Home) -> None:
    named = str(home.another("named"))
    home.ensure("--state-dir", named)
    found = examined(home, "--state-dir", named)
    assert found["daemon.running"]["severity"] == "ok"
    assert examined(home)["daemon.running"]["severity"] == "info"


def test_errors_come_first_with_the_command_that_mends_them(home: Home) -> None:
    home.ensure()
    home.paths.token.chmod(0o644)
    done = home.crewd("doctor")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "errors:",
        f"  state_dir.files: {home.paths.token} can be read by others",
        f"    $ chmod 600 {home.paths.token}",
    ]
    assert lines[-1].endswith("checks found all well (--all lists them)")
    subprocess.run(lines[2].strip(" $"), shell=True, check=True)  # noqa: S602 - as a person does
    assert worse(examined(home)) == set()


def test_all_that_is_well_is_listed_on_demand(home: Home) -> None:
    lines = home.crewd("doctor", "--all").stdout.splitlines()
    assert "  state_dir.permissions: " not in lines
    assert any(line.startswith("  python.version: Python 3.") for line in lines)
    assert "well:" in lines


def test_a_daemon_that_was_killed_is_told_by_what_it_left(home: Home) -> None:
    home.ensure()
    pid = home.pid()
    os.kill(pid, signal.SIGKILL)
    home.wait_until_free()
    found = examined(home)
    assert worse(found) == {"daemon.file"}
    assert found["daemon.file"]["details"]["pid"] == str(pid)


def test_a_daemon_that_hangs_is_named_with_the_way_out(home: Home) -> None:
    home.ensure()
    pid = home.pid()
    os.kill(pid, signal.SIGSTOP)
    found = examined(home, code=1)
    assert found["daemon.running"]["command"] == f"kill -CONT {pid}"
    assert f"pid {pid}" in found["daemon.answers"]["message"]
    os.kill(pid, signal.SIGCONT)
    assert worse(examined(home)) == set()


def test_a_wrong_token_is_told(home: Home) -> None:
    home.ensure()
    found = examined(home, CREWD_TOKEN="of another daemon")  # noqa: S106 - no secret
    assert found["daemon.answers"]["severity"] == "warning"
    assert "does not know this token (CREWD_TOKEN)" in found["daemon.answers"]["message"]


def test_the_project_of_a_directory_is_looked_at(home: Home) -> None:
    agents = home.root / "project" / ".crew" / "agents"
    agents.mkdir(parents=True)
    (agents / "bad.md").write_text("---\nname: [not, a, name]\n---\ntext\n")
    found = examined(home, "--cwd", str(home.root / "project"), code=1)
    assert found["catalog.problem"]["details"]["file"] == str(agents / "bad.md")


def test_the_doctor_looks_without_what_a_daemon_needs() -> None:
    script = "import sys, crewd.cli.doctor; print(*{'grpc', 'google.protobuf'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
