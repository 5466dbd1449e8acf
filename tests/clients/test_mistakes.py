"""What `crew` says when a place, a text, a number or a stream is no good."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
from asyncio.subprocess import DEVNULL, PIPE
from datetime import timedelta
from pathlib import Path

import pytest
from google.rpc.error_details_pb2 import BadRequest
from grpc import StatusCode

from crewd_client import NoDaemonError, _connect
from crewd_client.client import Client
from crewd_client.commands.exits import refusal_of
from crewd_client.locate import DaemonFile
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_event_pb2 import RunFinished
from crewd_client.v1.run_pb2 import RUN_STATUS_CANCELLED, RUN_STATUS_COMPLETED, Run, Workspace
from tests.clients.support.crew import COMMAND, PATIENCE, Ended, crew, environment
from tests.clients.support.fake_daemon import ASK, RUN, FakeDaemon
from tests.clients.support.wire import RefusedError, bad_request

SPEC = """goal: g
tasks:
- {id: a, command: [true], depends_on: [b]}
- {id: b, command: [true], depends_on: [a]}
limits: {max_tasks: 1}
"""


async def shell(daemon: FakeDaemon, script: str) -> Ended:
    """Run a script in which `crew` is the command."""
    function = f'crew() {{ {shlex.join(COMMAND)} "$@"; }}\n'
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        function + script,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        cwd=daemon.state_dir,
        env=environment(daemon.state_dir),
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    return Ended(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.parametrize(
    "command", ["show", "run --file ../run.yaml", "run --file {}/run.yaml", "ls --cwd ."]
)
async def test_a_current_directory_that_is_gone_is_told(daemon: FakeDaemon, command: str) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC)
    command = command.format(daemon.state_dir)

    done = await shell(daemon, f"mkdir gone; cd gone; rm -r ../gone; crew {command}")

    assert done.code == 2
    if "../" not in command:
        assert "error: the current directory is gone" in done.err
        assert "--cwd" in done.err


async def test_with_a_cwd_given_a_directory_that_is_gone_does_not_matter(
    daemon: FakeDaemon,
) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC)
    run = f"crew run --file {daemon.state_dir}/run.yaml --detach --cwd /"

    done = await shell(daemon, f"mkdir gone; cd gone; rm -r ../gone; {run}")

    assert (done.code, done.out) == (0, f"{RUN}\n")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (rf"printf '\xff\xfe' | crew answer {ASK} -", "stdin is not UTF-8 text"),
        (rf"crew answer {ASK} $'g\xff'", "'g\\udcff' is not UTF-8 text"),
        (r"crew run $'g\xff' --file run.yaml", "'g\\udcff' is not UTF-8 text"),
        (r"crew run --detach --file run.yaml --cwd $'\xff'", "is not UTF-8 text"),
        (r"mkdir $'\xff'; cd $'\xff'; crew show", "is not UTF-8 text"),
        (rf"crew steer {RUN} a $'g\xff'", "is not UTF-8 text"),
        (rf"crew events {RUN} --after 99999999999999999999", "is not in the range"),
        (rf"crew watch {RUN} --after -1", "is not in the range"),
        (rf"crew logs {RUN} a --attempt 2147483648", "is not in the range"),
        (rf"crew logs {RUN} a --tail 99999999999999999999", "is not in the range"),
        ("crew run --file - <&-", "cannot read stdin: Bad file descriptor"),
        (f"crew answer {ASK} - <&-", "cannot read stdin: Bad file descriptor"),
        ("crew run --file run.yaml --timeout 99999999999999d", "is"),
    ],
)
async def test_what_cannot_be_sent_is_a_usage_error(
    daemon: FakeDaemon, script: str, message: str
) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC)

    done = await shell(daemon, script)

    assert done.code == 2
    assert message in done.err
    assert "bug" not in done.err


async def test_what_cannot_be_told_of_the_path_is_left_out(daemon: FakeDaemon) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC)

    done = await shell(daemon, r"PATH=$PATH:/$'\xff'; crew run --file run.yaml --detach")

    assert done.code == 0
    assert daemon.requests("CreateRun")[0].env.path == os.defpath


@pytest.mark.parametrize(
    ("to", "why"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")]
)
@pytest.mark.parametrize(
    "command", ["show", "ls --json", "--help", "ls --help", "events", f"logs {RUN} a", "watch"]
)
async def test_a_stdout_that_takes_nothing_is_told_in_a_line(
    daemon: FakeDaemon, command: str, to: str, why: str
) -> None:
    here = Workspace(cwd=str(daemon.state_dir))
    run = daemon.add_run(Run(workspace=here))
    run.result.text = "done"
    await daemon.emit(Event(run_finished=RunFinished(), run_status=RUN_STATUS_COMPLETED))
    daemon.output = b"output" * 3

    done = await shell(daemon, f"crew {command} {to}")

    assert done.code == 1
    assert f"cannot write to stdout: {why}" in done.err
    assert done.err.count("cannot write") == 1
    assert "Traceback" not in done.err
    assert "Exception" not in done.err


async def test_a_closed_stderr_hides_what_is_said_only(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())

    shown, gone = await asyncio.gather(
        shell(daemon, f"crew show {RUN} 2>&-"), shell(daemon, "crew show run_2222222222 2>&-")
    )

    assert shown.out.startswith(RUN)
    assert (shown.code, gone.code) == (0, 6)


async def test_a_run_that_is_too_large_is_refused_before_it_is_sent(daemon: FakeDaemon) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC + f"labels: {{a: {'x' * (16 << 20)}}}\n")

    done = await crew(daemon, "run", "--file", "run.yaml", "--json")

    assert done.code == 2
    assert '"reason":"REQUEST_TOO_LARGE"' in done.err
    assert "the run is too large" in done.err
    assert daemon.calls == []


async def test_a_request_that_grpc_finds_too_large_has_that_reason(daemon: FakeDaemon) -> None:
    told = "SERVER: Received message larger than max (5 vs. 4)"
    daemon.refusals["CreateRun"] = [RefusedError(StatusCode.RESOURCE_EXHAUSTED, "", told)]
    (daemon.state_dir / "run.yaml").write_text(SPEC)

    done = await crew(daemon, "run", "--file", "run.yaml", "--json")

    assert done.code == 2
    assert '"reason":"REQUEST_TOO_LARGE"' in done.err


@pytest.mark.parametrize(
    ("reason", "message", "violations", "told"),
    [
        (
            "SPEC_INVALID",
            "spec.tasks[1].retry.max_attempts: must be from 0 to 9",
            [("spec.tasks[1].retry.max_attempts", "must be from 0 to 9")],
            "run.yaml:4: spec.tasks[1].retry.max_attempts: must be from 0 to 9\n",
        ),
        (
            "REQUEST_TOO_LARGE",
            "limits.max_tasks: is bad (and 1 more)",
            [("limits.max_tasks", "is bad"), ("asks.timeout", "is worse")],
            "run.yaml:5: limits.max_tasks: is bad (and 1 more)\nasks.timeout: is worse\n",
        ),
        (
            "GRAPH_CYCLE",
            "the tasks wait for each other: b -> a -> b; remove one",
            [("tasks", "cycle b -> a -> b")],
            "run.yaml:2: the tasks wait for each other: b -> a -> b; remove one\n",
        ),
    ],
)
async def test_what_the_daemon_finds_wrong_is_told_once(
    daemon: FakeDaemon, reason: str, message: str, violations: list[tuple[str, str]], told: str
) -> None:
    details = BadRequest()
    for field, description in violations:
        details.field_violations.add(field=field, description=description)
    daemon.refusals["CreateRun"] = [
        RefusedError(StatusCode.INVALID_ARGUMENT, reason, message, [details])
    ]
    (daemon.state_dir / "run.yaml").write_text(SPEC)

    done = await crew(daemon, "run", "--file", "run.yaml")

    assert (done.code, done.err) == (2, f"error: {told}")


async def test_a_field_that_an_older_daemon_does_not_know_is_told_by_its_name(
    daemon: FakeDaemon,
) -> None:
    fields = ("spec.tasks[1].6", "spec.role_overrides[a].2", "spec.9999")
    details = BadRequest()
    for field in fields:
        details.field_violations.add(field=field, description="unknown to this daemon")
    told = f"this daemon does not know the field {fields[0]}; it may be older than the client"
    daemon.refusals["CreateRun"] = [
        RefusedError(StatusCode.INVALID_ARGUMENT, "UNKNOWN_FIELD", told, [details])
    ]
    (daemon.state_dir / "run.yaml").write_text(SPEC)

    done = await crew(daemon, "run", "--file", "run.yaml")

    assert done.err == (
        "error: run.yaml:4: this daemon does not know the field spec.tasks[1].adapter; "
        "it may be older than the client\n"
        "spec.role_overrides[a].model: unknown to this daemon\n"
        "spec.9999: unknown to this daemon\n"
        "hint: the daemon is older than this command: crewd stop && crewd ensure\n"
    )


async def test_outside_of_a_file_it_is_told_once_too(daemon: FakeDaemon) -> None:
    details = [bad_request("kinds[0]", "there is no kind 'x'")]
    daemon.refusals["ListEvents"] = [
        RefusedError(StatusCode.INVALID_ARGUMENT, "SPEC_INVALID", "there is no kind 'x'", details)
    ]

    done = await crew(daemon, "events", RUN, "--kind", "x")

    assert done.err == "error: there is no kind 'x'\n"


async def test_cancelled_is_said_once(daemon: FakeDaemon) -> None:
    daemon.add_run(Run(status=RUN_STATUS_CANCELLED, status_reason="cancelled"))

    watched, shown = await asyncio.gather(crew(daemon, "watch", RUN), crew(daemon, "show", RUN))

    assert watched.err == f"{RUN} cancelled: no tasks\n"
    assert shown.out.startswith(f"{RUN}  cancelled\n")


@pytest.mark.parametrize("alive", [True, False])
async def test_a_daemon_that_hangs_is_told_from_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, alive: bool
) -> None:
    monkeypatch.setattr(_connect, "DEADLINE", timedelta(seconds=1))
    path = tmp_path / "crewd.sock"
    pid = os.getpid() if alive else 2**22 + 1
    file = DaemonFile(1, "i", "s", pid, "0", str(path), "", str(tmp_path))
    (tmp_path / "daemon.json").write_text(file.text())
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()

        with pytest.raises(NoDaemonError) as raised:
            await Client.connect(state_dir=tmp_path, env={})

    refusal = refusal_of(raised.value)
    assert refusal.code == 5
    assert refusal.hint == (
        f"kill -9 {pid}, then: crewd ensure" if alive else "start it: crewd ensure"
    )
    assert ("does not answer" in refusal.message) is alive
