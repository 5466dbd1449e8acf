from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.host.driver import Controller, HostUnderTest, Message

JOB = "run/task/1"


def test_a_repeated_start_starts_nothing(host: HostUnderTest, controller: Controller) -> None:
    first = controller.shell(JOB, "echo once; sleep 600")
    controller.wait("output", job=JOB)

    assert controller.shell(JOB, "echo twice") == first
    assert len(controller.ask("list")["jobs"]) == 1
    assert host.spooled(JOB) == b"once\n"


def test_a_start_of_an_ended_job_starts_nothing_until_it_is_forgotten(
    controller: Controller,
) -> None:
    first = controller.shell(JOB, "exit 0")
    controller.wait_exit(JOB)

    again = controller.start(JOB, "/bin/true")
    assert (again["pid"], again["ended"]) == (first, True)

    controller.ask("forget", jobs=[JOB])
    assert controller.start(JOB, "/bin/true")["pid"] != first


def test_a_start_meant_for_another_epoch_is_refused(asker: Controller) -> None:
    order = asker.order(JOB, "/bin/true", epoch="another")

    assert asker.refusal("start", **order) == "epoch"
    assert asker.ask("list")["jobs"] == []


@pytest.mark.parametrize(
    ("program", "cwd", "kind"),
    [
        ("/bin/true", "/no/such/place", "cwd_missing"),
        ("/bin/true", "/etc/passwd", "cwd_missing"),
        ("/no/such/program", "/", "executable_missing"),
        ("/etc/passwd", "/", "not_executable"),
        ("/etc", "/", "not_executable"),
        ("/bin/true\0", "/", "spawn"),
        ("/no\udcff", "/\ud800", "spawn"),
        ("true", "/", "bad_request"),
        ("/bin/true", "tmp", "bad_request"),
    ],
)
def test_a_refused_start_says_why(asker: Controller, program: str, cwd: str, kind: str) -> None:
    order = asker.order(JOB, program, cwd=cwd)

    assert asker.refusal("start", **order) == kind
    assert asker.ask("ping")["ok"]


def test_a_script_without_its_interpreter_is_named_as_such(
    asker: Controller, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)

    answer = asker.start(JOB, str(script))

    assert answer["error"]["kind"] == "executable_missing"
    assert "interpreter" in answer["error"]["message"]


def test_arguments_that_no_kernel_takes_are_refused(asker: Controller) -> None:
    answer = asker.start(JOB, "/bin/true", "x" * (4 << 20))

    assert (answer["error"]["kind"], answer["error"]["errno"]) == ("spawn", "E2BIG")


@pytest.mark.parametrize(
    "job", ["", "run", "run/task", "run//1", "a/b/\n", "a/b/\ud800", "a/b/" + 600 * "c"]
)
def test_a_job_key_has_three_printable_parts(asker: Controller, job: str) -> None:
    assert asker.refusal("start", **asker.order(job, "/bin/true")) == "bad_request"


def test_an_exit_tells_the_code(controller: Controller) -> None:
    controller.shell(JOB, "exit 7")

    seen = controller.wait_exit(JOB)

    assert (seen["exit_code"], seen["signal"], seen["stopped"]) == (7, None, False)
    assert seen["epoch"] == controller.epoch


def test_an_exit_tells_the_signal(controller: Controller) -> None:
    controller.shell(JOB, "kill -SEGV $$")

    seen = controller.wait_exit(JOB)

    assert (seen["exit_code"], seen["signal"]) == (None, signal.SIGSEGV)


def test_a_worker_is_born_clean(host: HostUnderTest, controller: Controller) -> None:
    script = 'grep -E "^Sig(Blk|Ign)" /proc/self/status; ls /proc/self/fd | wc -w; pwd; cat'

    controller.shell(JOB, script, cwd="/usr")
    controller.wait_exit(JOB)

    signals_blocked, signals_ignored, descriptors, cwd = host.spooled(JOB).split(b"\n")[:4]
    assert int(signals_blocked.split()[1], 16) == 0
    # The C library's own two signals, 32 and 33, are ignored in whatever posix_spawn starts.
    assert int(signals_ignored.split()[1], 16) & ~0x180000000 == 0
    assert (int(descriptors), cwd) == (4, b"/usr")  # Its three, and the one `ls` reads with.


def test_a_worker_gets_the_environment_it_was_given_and_its_attempt(
    host: HostUnderTest, controller: Controller
) -> None:
    marker = host.paths.marker.read_text()

    controller.start(JOB, "/usr/bin/env", env={"A": "1", "B": "\udcff"})
    controller.wait_exit(JOB)

    assert sorted(host.spooled(JOB).splitlines()) == [
        b"A=1",
        b"B=\xff",
        f"CREWD_ATTEMPT={marker}/{JOB}".encode(),
    ]


def test_every_start_of_many_is_answered_and_ends(controller: Controller) -> None:
    jobs = [f"run/task{number}/1" for number in range(100)]
    requests = [controller.send("start", **controller.order(job, "/bin/true")) for job in jobs]

    for request in requests:
        assert controller.reply_to(request)["ok"]
    for job in jobs:
        assert controller.wait_exit(job)["exit_code"] == 0


def test_a_stop_takes_a_start_out_of_the_queue(controller: Controller) -> None:
    jobs = [f"run/task{number}/1" for number in range(40)]
    starts = [controller.send("start", **controller.order(job, "/bin/true")) for job in jobs]
    stop = controller.send("stop", job=jobs[-1], grace_ms=1000)

    answers = {message["id"]: message for message in _replies(controller, len(jobs) + 1)}

    assert answers[stop]["ok"]
    if answers[starts[-1]]["ok"]:
        pytest.skip("the host was too fast for the stop")
    assert answers[starts[-1]]["error"]["kind"] == "stopped"
    seen = controller.wait_exit(jobs[-1])
    assert (seen["never_started"], seen["stopped"], seen["exit_code"]) == (True, True, None)


def _replies(controller: Controller, count: int) -> list[Message]:
    replies: list[Message] = []
    while len(replies) < count:
        message = controller.receive()
        (controller.news if "news" in message else replies).append(message)
    return replies
