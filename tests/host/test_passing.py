from __future__ import annotations

import fcntl
import os
import struct
import termios
from pathlib import Path

import pytest

from tests.host.driver import Controller, HostUnderTest, Message, alive, eventually
from tests.host.echo import NEW, OLD, Echo

INT = struct.Struct("i")


def in_pipe(pid: int) -> int:
    """Tell how much of what the process wrote to stdout is not read."""
    descriptor = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        count: int = INT.unpack(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(INT.size)))[0]
    finally:
        os.close(descriptor)
    return count


def descriptors(host: HostUnderTest) -> int:
    return len(list(Path(f"/proc/{host.pid}/fd").iterdir()))


def test_one_process_does_the_work_of_two_jobs(host: HostUnderTest, echo: Echo) -> None:
    echo.say(OLD, "one")

    assert echo.hand_on()["pid"] == echo.pid

    ended, begun = echo.controller.wait_exit(OLD), echo.controller.wait("started", job=NEW)
    assert (ended["exit_code"], ended["signal"], ended["passed_to"]) == (0, None, NEW)
    assert (ended["stdout"], ended["stderr"], ended["stdin_seq"]) == (4, 2, 1)
    assert (ended["stopped"], ended["survivors"], begun["pid"]) == (False, [], echo.pid)
    assert echo.say(NEW, "two") == "two"
    echo.tell(NEW, "end")
    seen = echo.controller.wait_exit(NEW)
    assert (seen["exit_code"], seen["stdout"], seen["stdin_seq"]) == (7, 8, 2)
    assert "passed_to" not in seen
    assert (host.spooled(OLD), host.spooled(NEW)) == (b"one\n", b"two\nend\n")
    assert (host.spooled(OLD, "stderr"), host.spooled(NEW, "stderr")) == (b"!\n", b"!\n!\n")


def test_the_end_of_the_one_is_told_before_anything_of_the_other(echo: Echo) -> None:
    """All of it may be asked for at once, and so be answered in one turn of the host."""
    controller = echo.controller
    echo.say(OLD, "one")
    controller.news.clear()
    passed = controller.send("pass", **echo.order(OLD, NEW))
    written = controller.send("write", job=NEW, seq=1, data="two\n")

    told: list[Message] = []
    while not told or told[-1].get("id") != written:
        told.append(controller.receive())

    of_both = [message for message in told if message.get("news") != "output"]
    assert [message.get("news", message.get("id")) for message in of_both] == [
        "exit",
        "started",
        passed,
        written,
    ]
    assert all(message["job"] == OLD for message in told if message.get("news") == "output")


def test_what_was_written_before_belongs_to_the_first_job(host: HostUnderTest) -> None:
    """Even what nobody has read yet, since there was too much that was unread."""
    host.start("--unread-limit", "1")
    controller = host.controller()
    echo = Echo(host, controller)
    echo.say(OLD, "one")
    controller.wait("full", job=OLD, stream="stdout")
    echo.tell(OLD, "unread")
    eventually(lambda: in_pipe(echo.pid) == len("unread\n"))

    assert echo.hand_on()["ok"]

    assert host.spooled(OLD) == b"one\nunread\n"
    assert controller.wait_exit(OLD)["stdout"] == len("one\nunread\n")
    assert echo.say(NEW, "two") == "two"
    assert host.spooled(NEW) == b"two\n"


def test_the_first_job_has_ended_like_any_other(host: HostUnderTest, echo: Echo) -> None:
    echo.say(OLD, "one")
    echo.hand_on()
    controller = echo.controller

    assert controller.refusal("write", job=OLD, seq=2, data="x") == "closed"
    assert controller.ask("stop", job=OLD, grace_ms=0)["ok"]
    controller.ask("forget", jobs=[OLD])

    assert controller.ask("list")["exits"] == []
    assert host.spooled(OLD) == b""
    assert echo.say(NEW, "two") == "two"


def test_a_stop_takes_the_tree_of_the_second_job(echo: Echo) -> None:
    echo.hand_on()
    echo.controller.ask("forget", jobs=[OLD])
    child, stray = int(echo.say(NEW, "child")), int(echo.say(NEW, "stray"))

    echo.controller.ask("stop", job=NEW, grace_ms=1000)

    seen = echo.controller.wait_exit(NEW)
    assert (seen["stopped"], seen["survivors"], seen["passed_from"]) == (True, [], OLD)
    assert not any(map(alive, (echo.pid, child, stray)))


def test_what_the_second_job_leaves_is_stopped(echo: Echo) -> None:
    echo.hand_on()
    stray = int(echo.say(NEW, "stray"))

    echo.tell(NEW, "end")

    assert echo.controller.wait_exit(NEW)["exit_code"] == 7
    assert not alive(stray)


@pytest.mark.parametrize("forgotten", [[], [OLD]])
def test_where_no_mark_can_be_put_the_key_of_the_first_job_tells(
    host: HostUnderTest, forgotten: list[str]
) -> None:
    host.start(prefix=("/usr/bin/prlimit", "--rttime=1000000000:1000000000"))
    echo = Echo(host, host.controller())
    echo.hand_on()
    echo.controller.ask("forget", jobs=forgotten)
    stray = int(echo.say(NEW, "stray"))

    echo.controller.ask("stop", job=NEW, grace_ms=1000)

    assert echo.controller.wait_exit(NEW)["survivors"] == []
    assert not alive(stray)


def test_a_controller_that_comes_back_finds_both(host: HostUnderTest, echo: Echo) -> None:
    echo.say(OLD, "one")
    echo.hand_on()
    echo.tell(NEW, "two")
    echo.controller.close()

    found = host.stranger().hello()

    (job,), (seen,) = found["jobs"], found["exits"]
    assert "pass" in found["features"]
    assert (job["job"], job["pid"], job["stdin_seq"]) == (NEW, echo.pid, 1)
    assert (seen["job"], seen["passed_to"], seen["stdout"]) == (OLD, NEW, 4)


@pytest.mark.parametrize("keep_children", [False, True])
def test_a_new_host_kills_what_was_passed_and_keeps_the_exit(
    host: HostUnderTest, controller: Controller, *, keep_children: bool
) -> None:
    echo = Echo(host, controller, keep_children=keep_children)
    echo.say(OLD, "one")
    echo.hand_on()
    echo.say(NEW, "two")
    stray = int(echo.say(NEW, "stray"))
    host.kill()
    assert alive(echo.pid)

    host.start()

    assert not alive(echo.pid)
    assert not alive(stray)
    found = host.controller().ask("list")
    assert [(seen["job"], seen["passed_to"]) for seen in found["exits"]] == [(OLD, NEW)]
    assert [(lost["job"], lost["stdout"]) for lost in found["lost"]] == [
        (NEW, len(f"two\n{stray}\n"))
    ]
    assert found["strays"] == []


def test_a_job_ends_once_whenever_its_host_is_killed(
    host: HostUnderTest, controller: Controller
) -> None:
    for _ in range(5):
        echo = Echo(host, controller)
        controller.send("pass", **echo.order(OLD, NEW))
        host.kill()

        host.start()

        assert not alive(echo.pid)
        controller = host.controller()
        found = controller.ask("list")
        ended = [seen["job"] for seen in found["exits"]]
        lost = [lost["job"] for lost in found["lost"]]
        assert (ended, lost) in [([], [OLD]), ([OLD], [NEW])]
        controller.ask("forget", jobs=[OLD, NEW])


def test_an_exit_of_what_was_passed_survives_the_death_of_the_host(
    host: HostUnderTest, echo: Echo
) -> None:
    echo.hand_on()
    echo.tell(NEW, "end")
    echo.controller.wait_exit(NEW)
    host.kill()

    host.start()

    later = host.controller()
    assert {seen["job"]: seen["exit_code"] for seen in later.ask("list")["exits"]} == {
        OLD: 0,
        NEW: 7,
    }
    assert later.ask("pass", **echo.order(OLD, NEW))["ended"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(True, None, True), (False, True, True), (False, None, False), (True, False, False)],
)
def test_the_second_job_keeps_its_children_if_told_so_or_else_like_the_first(
    host: HostUnderTest,
    controller: Controller,
    *,
    first: bool,
    second: bool | None,
    kept: bool,
) -> None:
    echo = Echo(host, controller, keep_children=first)
    order = {} if second is None else {"keep_children": second}
    assert echo.controller.ask("pass", **echo.order(OLD, NEW), **order)["ok"]
    stray = int(echo.say(NEW, "stray"))
    echo.tell(NEW, "end")
    controller.wait_exit(NEW)
    host.kill()

    host.start()

    assert alive(stray) is kept
    if kept:
        os.kill(stray, 9)


def test_a_process_can_be_passed_many_times(host: HostUnderTest, echo: Echo) -> None:
    jobs = [f"run/t{number}/1" for number in range(50)]
    echo.say(OLD, "begin")
    before = descriptors(host)

    for source, target in zip([OLD, *jobs], jobs, strict=False):
        assert echo.hand_on(source, target)["pid"] == echo.pid
        assert echo.say(target, target) == target
        echo.controller.ask("forget", jobs=[source])

    assert descriptors(host) == before
    echo.tell(jobs[-1], "end")
    echo.controller.wait_exit(jobs[-1])
    echo.controller.ask("forget", jobs=jobs)
    assert list(host.paths.spool.iterdir()) == []
    assert echo.controller.ask("list")["exits"] == []
