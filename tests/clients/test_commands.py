from __future__ import annotations

import asyncio
import json
import signal
import stat
import sys
from pathlib import Path

import pytest
from grpc import StatusCode

from crewd_client.cli import main
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, ASK_STATUS_OPEN, Ask, AskOption
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.failure_pb2 import Failure
from crewd_client.v1.run_event_pb2 import RunBlocked, RunFinished, RunStarted
from crewd_client.v1.run_pb2 import (
    RUN_STATUS_BLOCKED,
    RUN_STATUS_CANCELLED,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
    RUN_STATUS_RUNNING,
    Run,
    RunResult,
    RunStatus,
    Workspace,
)
from crewd_client.v1.spec_pb2 import TaskSpec
from crewd_client.v1.task_pb2 import Task
from tests.clients.support.crew import crew, ended, line_with, start
from tests.clients.support.fake_daemon import ASK, RUN, FakeDaemon
from tests.clients.support.wire import RefusedError, bad_request

SPEC = "goal: g\ntasks:\n- {id: a, command: [true]}\n"


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def ends_as(daemon: FakeDaemon, status: RunStatus.ValueType) -> None:
    """Let the run that is created end at once."""

    def create(run: Run) -> None:
        run.result.CopyFrom(RunResult(text="the \x1b[31mresult\n"))
        run.status = status

    daemon.on_create = create


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (RUN_STATUS_COMPLETED, 0),
        (RUN_STATUS_FAILED, 1),
        (RUN_STATUS_BLOCKED, 3),
        (RUN_STATUS_CANCELLED, 4),
    ],
)
async def test_a_run_s_end_is_the_exit_code(
    daemon: FakeDaemon, status: RunStatus.ValueType, code: int
) -> None:
    ends_as(daemon, status)

    done = await crew(daemon, "run", "--file", "-", stdin=SPEC)

    assert done.code == code
    assert done.out == ("the \x1b[31mresult\n" if code == 0 else "")
    assert RUN in done.err


async def test_run_submits_what_was_typed_over_what_the_file_says(daemon: FakeDaemon) -> None:
    (daemon.state_dir / "run.yaml").write_text(SPEC + "workspace: {cwd: sub/..}\n")
    options = ["--detach", "--request-id", "mine", "--timeout", "2m", "--unattended"]

    done = await crew(daemon, "run", "do it", "--file", "run.yaml", *options, cwd=daemon.state_dir)

    request = daemon.requests("CreateRun")[0]
    assert (done.code, done.out) == (0, f"{RUN}\n")
    assert (request.spec.goal, request.request_id) == ("do it", "mine")
    assert request.spec.workspace.cwd == str(daemon.state_dir)
    assert list(request.spec.tasks) == [TaskSpec(id="a", command=["true"])]
    assert request.spec.limits.max_duration.seconds == 120
    assert request.spec.asks.HasField("timeout")
    assert request.env.path.startswith("/")


async def test_a_dry_run_creates_nothing(daemon: FakeDaemon) -> None:
    done = await crew(daemon, "run", "--file", "-", "--dry-run", stdin=SPEC)

    assert (done.code, done.out) == (0, f"valid: 1 task in {daemon.state_dir}\n")
    assert daemon.runs == {}


async def test_a_bad_file_is_told_before_anything_is_sent(daemon: FakeDaemon) -> None:
    done = await crew(daemon, "run", "--file", "-", stdin="tasks: [{id: a, comand: [x]}]")

    assert done.code == 2
    assert "error: <stdin> has 2 problems\n<stdin>:1: unknown key 'comand'" in done.err
    assert daemon.calls == []


async def test_what_the_daemon_finds_wrong_is_told_by_line(daemon: FakeDaemon) -> None:
    details = [bad_request("spec.tasks[0].command", "is too long")]
    daemon.refusals["CreateRun"] = [
        RefusedError(StatusCode.INVALID_ARGUMENT, "SPEC_INVALID", "the spec is invalid", details)
    ]

    done = await crew(daemon, "run", "--file", "-", stdin=SPEC)

    assert done.code == 2
    assert done.err == "error: the spec is invalid\n<stdin>:3: spec.tasks[0].command: is too long\n"


async def test_json_gives_events_then_the_run(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())
    await daemon.emit(Event(run_started=RunStarted()))
    await daemon.emit(Event(run_finished=RunFinished(), run_status=RUN_STATUS_COMPLETED))

    done = await crew(daemon, "watch", RUN, "--json")

    first, second, last = lines(done.out)
    assert (first["kind"], first["data"], second["run_status"]) == ("run_started", {}, "completed")
    assert list(last) == ["run"]
    assert (done.code, done.err) == (0, "")


async def test_an_old_block_does_not_end_a_watch_but_a_new_one_does(daemon: FakeDaemon) -> None:
    daemon.add_run(Run(error=Failure(message="why")))
    await daemon.emit(Event(run_blocked=RunBlocked(), run_status=RUN_STATUS_BLOCKED))
    await daemon.emit(Event(run_started=RunStarted(), run_status=RUN_STATUS_RUNNING))
    process = await start(daemon, "watch", RUN, "--json")
    assert process.stdout is not None
    await process.stdout.readline()
    await process.stdout.readline()

    await daemon.emit(Event(run_blocked=RunBlocked(), run_status=RUN_STATUS_BLOCKED))

    assert (await ended(process)).code == 3


async def test_a_wait_that_takes_too_long_ends_with_124(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())

    done = await crew(daemon, "wait", RUN, "--timeout", "50ms")

    assert done.code == 124
    assert "the run goes on" in done.err


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_leaves_the_run_to_itself(
    daemon: FakeDaemon, which: signal.Signals, code: int
) -> None:
    daemon.add_run(Run())
    process = await start(daemon, "watch", RUN)
    await daemon.called("WatchRun")

    process.send_signal(which)
    done = await ended(process)

    assert done.code == code
    assert f"crew cancel {RUN}" in done.err
    assert daemon.requests("CancelRun") == []


@pytest.mark.parametrize("options", [(), ("--cancel-on-interrupt",)])
async def test_a_second_interrupt_cancels_or_the_first_if_told_so(
    daemon: FakeDaemon, options: tuple[str, ...]
) -> None:
    process = await start(daemon, "run", "--file", "/dev/stdin", *options)
    assert process.stdin is not None
    process.stdin.write(SPEC.encode())
    process.stdin.write_eof()
    await daemon.called("WatchRun")

    process.send_signal(signal.SIGINT)
    if not options:
        await line_with(process, "cancels it")
        process.send_signal(signal.SIGINT)
    assert (await daemon.called("CancelRun")).run_id == RUN
    await daemon.emit(Event(run_finished=RunFinished(), run_status=RUN_STATUS_CANCELLED))

    assert (await ended(process)).code == 4


async def test_without_a_daemon_the_exit_code_is_5(daemon: FakeDaemon) -> None:
    await daemon.stop()

    done = await crew(daemon, "ls")
    as_json = await crew(daemon, "ls", "--json")

    assert done.code == 5
    assert done.err.endswith("hint: start it: crewd ensure\n")
    assert lines(as_json.err)[0]["error"] == {
        "message": f"no daemon answers at {daemon.socket}",
        "hint": "start it: crewd ensure",
        "code": "unavailable",
        "reason": "",
        "metadata": {},
        "violations": [],
    }


async def test_run_starts_the_daemon_with_crewd_ensure(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.stop()
    asked = tmp_path / "asked"
    program = tmp_path / "crewd"
    program.write_text(f'#!/bin/sh\necho "$@" > {asked}\necho no luck >&2\nexit 5\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    # A command beside the fake `crewd`, as an installation has it.
    script = tmp_path / "crew"
    script.write_text("from crewd_client.cli import main; main()")
    monkeypatch.setattr("tests.clients.support.crew.COMMAND", [sys.executable, str(script)])

    done = await crew(daemon, "run", "--file", "-", stdin=SPEC)

    assert (done.code, done.err) == (5, "error: no luck\n")
    assert asked.read_text() == "ensure --json\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show",), 6, "error: there is no run of"),
        (("show", "run_zz"), 6, "error: no run begins with 'run_zz'; there are:\n  run_aaaaaaaaaa"),
        (("show", "a"), 2, "error: 'a' may be any of 2 runs:\n  run_aaaaaaaaaa  running"),
        (("show", "run_2222222222"), 6, "error: no such run\nhint: see `crew ls -a`"),
    ],
)
async def test_a_run_that_is_not_clearly_named_is_told_with_the_candidates(
    daemon: FakeDaemon, arguments: tuple[str, ...], code: int, message: str
) -> None:
    for name in ("aaaaaaaaaa", "aaaabbbbbb"):
        daemon.add_run(Run(id=f"run_{name}"))

    done = await crew(daemon, *arguments)

    assert done.code == code
    assert message in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lss", "error: No such command 'lss'"),
        ("ls --nope", "error: No such option '--nope'"),
        ("run", "error: what is to be done?"),
        ("run --file /is/not/there", "error: /is/not/there: No such file or directory"),
        ("wait --timeout soon", "'soon' is no duration"),
        ("call RunServce/GetRun", "did you mean 'RunService'?"),
        ("call RunService/GetRuns", "did you mean 'GetRun'?"),
        ('call RunService/GetRun {"id":1}', "error: id: unknown key 'id'"),
        ("call RunService/GetRun {", "error: the request is not JSON"),
        ("answer ask_2222222222", "error: no answer is given"),
        ("answer ask_2222222222 yes --decline", "exclude each other"),
    ],
)
def test_a_mistake_is_told_in_a_line_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    message: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["crew", *arguments.split()])

    with pytest.raises(SystemExit) as ended_with:
        main()

    said = capsys.readouterr().err
    assert ended_with.value.code == 2
    assert message in said
    assert "Traceback" not in said


async def test_a_bug_of_ours_ends_with_70(daemon: FakeDaemon) -> None:
    daemon.refusals["ListRuns"] = [RefusedError(StatusCode.INTERNAL, "INTERNAL", "incident 7")]

    done = await crew(daemon, "ls")

    assert (done.code, done.err) == (70, "error: incident 7\n")


async def test_any_unique_beginning_names_a_run_and_none_the_newest_here(
    daemon: FakeDaemon,
) -> None:
    here = Workspace(cwd=str(daemon.state_dir))
    daemon.add_run(Run(id="run_bbbbbbbbbb", workspace=here))
    daemon.add_run(Run(id="run_cccccccccc", workspace=here))
    daemon.add_run(Run(id="run_dddddddddd"))

    by_prefix, newest = await asyncio.gather(
        crew(daemon, "show", "b", "--json"), crew(daemon, "show", "--json")
    )

    assert '"id":"run_bbbbbbbbbb"' in by_prefix.out
    assert '"id":"run_cccccccccc"' in newest.out


async def test_lists_print_one_resource_a_line(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())
    daemon.tasks = [Task(id="a", run_id=RUN), Task(id="b", run_id=RUN)]
    daemon.asks[ASK] = Ask(id=ASK, status=ASK_STATUS_OPEN, question="\x1b[2Jwhat?")

    ls, show, asks, table = await asyncio.gather(
        crew(daemon, "ls", "--json"),
        crew(daemon, "show", RUN, "--json"),
        crew(daemon, "asks", "--json"),
        crew(daemon, "asks"),
    )

    assert [run["id"] for run in lines(ls.out)] == [RUN]
    assert list(lines(show.out)[0]) == ["run", "tasks"]
    assert [ask["question"] for ask in lines(asks.out)] == ["\x1b[2Jwhat?"]
    assert table.out.splitlines()[1].endswith("  what?")


async def test_answers_are_given_by_option_by_text_and_refused_late(daemon: FakeDaemon) -> None:
    options = [AskOption(id="yes", label="Yes"), AskOption(id="no")]
    daemon.asks[ASK] = Ask(id=ASK, status=ASK_STATUS_OPEN, options=options, max_choices=1)
    daemon.asks["ask_2222222222"] = Ask(id="ask_2222222222", status=ASK_STATUS_ANSWERED)

    done, late = await asyncio.gather(
        crew(daemon, "answer", "bb", "YES"), crew(daemon, "answer", "ask_22", "-", stdin="text")
    )

    assert (done.code, done.out) == (0, f"{ASK} answered\n")
    assert (late.code, late.err) == (6, "error: the ask is settled\n")
    answers = {request.ask_id: request for request in daemon.requests("AnswerAsk")}
    assert (answers[ASK].option_ids, answers[ASK].text) == (["yes"], "")
    assert answers["ask_2222222222"].text == "text"


async def test_logs_print_the_bytes_and_the_last_lines(daemon: FakeDaemon) -> None:
    daemon.chunk = 5000
    daemon.output = b"".join(b"line %d \xff\n" % number for number in range(5000)) + b"end"

    whole, tail = await asyncio.gather(
        start(daemon, "logs", RUN, "t"), start(daemon, "logs", RUN, "t", "--tail", "3", "-f")
    )

    assert (await whole.communicate())[0] == daemon.output
    assert (await tail.communicate())[0] == b"line 4998 \xff\nline 4999 \xff\nend"


async def test_call_speaks_json_and_prints_a_stream_line_by_line(daemon: FakeDaemon) -> None:
    daemon.output = b"12345678"
    asked = json.dumps({"run_id": RUN, "stream": "STDOUT"})

    done = await crew(daemon, "call", "RunService/ReadOutput", "-", stdin=asked)

    assert [line["next_offset"] for line in lines(done.out)] == [7, 8, 8]


async def test_a_reader_that_has_seen_enough_ends_it_quietly(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())
    daemon.page_size = 1000
    for _ in range(3000):
        await daemon.emit(Event(run_started=RunStarted()))
    process = await start(daemon, "events", RUN, "--json")
    assert process.stdout is not None
    assert process.stderr is not None

    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    assert await process.stderr.read() == b""
    assert await process.wait() == 0


async def test_a_goal_alone_goes_to_the_default_team(daemon: FakeDaemon) -> None:
    await crew(daemon, "run", "add a greeting", "--detach")

    (request,) = daemon.requests("CreateRun")
    assert (request.spec.goal, request.spec.team) == ("add a greeting", "default")


async def test_whom_a_run_names_is_said_to_the_daemon(daemon: FakeDaemon) -> None:
    await crew(daemon, "run", "go", "--workflow", "review", "--detach")
    await crew(daemon, "run", "go", "--agent", "scribe", "--detach")

    first, second = (request.spec for request in daemon.requests("CreateRun"))
    assert (first.team, first.workflow, second.agent) == ("", "review", "scribe")
