from __future__ import annotations

import os
from pathlib import Path

from crewd.host.protocol import SEGMENT_BYTES
from tests.host.driver import Controller, HostUnderTest, eventually

JOB = "run/task/1"
LIMIT = 1 << 20


def test_output_is_spooled_byte_for_byte(host: HostUnderTest, controller: Controller) -> None:
    controller.shell(JOB, r"printf '\377\376\000ok\n'; printf 'bad \303' >&2")

    seen = controller.wait_exit(JOB)

    assert host.spooled(JOB) == b"\xff\xfe\0ok\n"
    assert host.spooled(JOB, "stderr") == b"bad \xc3"
    assert (seen["stdout"], seen["stderr"]) == (6, 5)


def test_a_silent_job_makes_no_file(host: HostUnderTest, controller: Controller) -> None:
    before = set(host.paths.root.rglob("*"))

    controller.shell(JOB, "exit 0")
    controller.wait_exit(JOB)

    assert set(host.paths.root.rglob("*")) == before


def test_fifty_megabytes_come_whole_and_in_segments(
    host: HostUnderTest, controller: Controller, tmp_path: Path
) -> None:
    data = os.urandom(1 << 20) * 50
    source = tmp_path / "data"
    source.write_bytes(data)

    controller.start(JOB, "/bin/cat", str(source))
    seen = controller.wait_exit(JOB)

    assert seen["stdout"] == len(data)
    assert host.spooled(JOB) == data
    assert host.paths.segment(JOB, "stdout", 0).stat().st_size == SEGMENT_BYTES
    assert host.paths.segment(JOB, "stdout", 0).stat().st_mode & 0o777 == 0o600


def test_segments_that_are_read_are_dropped_and_the_last_is_kept(
    host: HostUnderTest, controller: Controller
) -> None:
    size = 2 * SEGMENT_BYTES
    controller.shell(JOB, f"head -c {size} /dev/zero; sleep 600")
    controller.wait("output", job=JOB, stdout=size)

    controller.send("read", job=JOB, stdout=size, stderr=0)
    controller.ask("ping")

    assert not host.paths.segment(JOB, "stdout", 0).exists()
    assert host.paths.segment(JOB, "stdout", 1).exists()


def test_forgotten_output_is_dropped(host: HostUnderTest, controller: Controller) -> None:
    controller.shell(JOB, "echo out; echo err >&2")
    controller.wait_exit(JOB)

    controller.ask("forget", jobs=[JOB, "never/heard/1"])

    assert list(host.paths.spool.iterdir()) == []
    assert controller.ask("list")["exits"] == []


def test_a_pipe_is_not_read_beyond_the_unread_limit(host: HostUnderTest) -> None:
    host.start("--unread-limit", str(LIMIT))
    controller = host.controller()
    size = 4 * LIMIT
    controller.shell(JOB, f"head -c {size} /dev/zero")

    controller.wait("full", job=JOB, stream="stdout")
    spooled = len(host.spooled(JOB))
    assert LIMIT <= spooled < 2 * LIMIT

    while spooled < size:
        controller.send("read", job=JOB, stdout=spooled, stderr=0)
        spooled = _output_beyond(controller, spooled)
    assert controller.wait_exit(JOB)["stdout"] == size


def test_without_a_controller_the_limit_is_another(host: HostUnderTest) -> None:
    host.start("--unread-limit", str(LIMIT), "--unread-limit-alone", str(3 * LIMIT))
    controller = host.controller()
    controller.shell(JOB, "yes")
    controller.wait("full", job=JOB)

    controller.close()

    eventually(lambda: len(host.spooled(JOB)) >= 3 * LIMIT)
    assert host.controller().ask("list")["jobs"][0]["stdout"] < 4 * LIMIT


def _output_beyond(controller: Controller, offset: int) -> int:
    while True:
        message = controller.receive()
        controller.news.append(message)
        if message["news"] in {"output", "exit"} and message["stdout"] > offset:
            return int(message["stdout"])
