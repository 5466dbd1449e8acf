from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.host.driver import Controller, HostUnderTest, alive, number_in

JOB = "run/task/1"

# Leaves its session, its parent, its environment and its pipes behind, and is deaf to TERM.
ESCAPE = """
import os, signal, sys, time
if os.fork():
    os.wait()
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
for number in (0, 1, 2):
    os.close(number)
code = (
    "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "f = open(%r, 'w'); f.write(str(os.getpid()) + chr(10)); f.close(); time.sleep(600)"
)
os.execve(sys.executable, [sys.executable, "-c", code % sys.argv[1]], {})
"""


def escape(file: Path) -> str:
    """Return a command that ends when the process that escapes has written its pid."""
    program = file.with_suffix(".py")
    program.write_text(ESCAPE)
    return f"{sys.executable} {program} {file}; until test -s {file}; do sleep 0.01; done"


def test_a_stop_asks_first(controller: Controller) -> None:
    controller.shell(JOB, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    controller.wait("output", job=JOB)

    assert controller.ask("stop", job=JOB, grace_ms=20_000)["ok"]

    seen = controller.wait_exit(JOB)
    assert (seen["exit_code"], seen["stopped"], seen["survivors"]) == (5, True, [])


def test_a_stop_kills_what_does_not_listen(controller: Controller, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"trap '' TERM; sh -c 'echo $$ > {child}; exec sleep 600' & wait; sleep 600"
    pid = controller.shell(JOB, script)
    grandchild = number_in(child)

    controller.ask("stop", job=JOB, grace_ms=100)

    seen = controller.wait_exit(JOB)
    assert (seen["signal"], seen["stopped"], seen["survivors"]) == (signal.SIGKILL, True, [])
    assert not alive(pid)
    assert not alive(grandchild)


def test_a_stop_finds_what_has_left_session_parent_and_environment(
    controller: Controller, tmp_path: Path
) -> None:
    controller.shell(JOB, f"{escape(tmp_path / 'pid')}; sleep 600")
    escaped = number_in(tmp_path / "pid")

    controller.ask("stop", job=JOB, grace_ms=100)

    assert controller.wait_exit(JOB)["survivors"] == []
    assert not alive(escaped)


def test_where_no_mark_can_be_put_the_environment_tells(
    host: HostUnderTest, tmp_path: Path
) -> None:
    host.start(prefix=("/usr/bin/prlimit", "--rttime=1000000000:1000000000"))
    controller = host.controller()
    # Its parent ends before it does, so nothing but its environment says whose it is.
    orphan = f"setsid sh -c 'echo $$ > {tmp_path / 'pid'}; exec sleep 600' >/dev/null 2>&1 &"
    controller.shell(JOB, f'sh -c "{orphan}"; sleep 600')
    escaped = number_in(tmp_path / "pid")

    controller.ask("stop", job=JOB, grace_ms=1000)

    assert controller.wait_exit(JOB)["survivors"] == []
    assert not alive(escaped)


def test_a_process_that_is_halted_is_stopped_too(controller: Controller, tmp_path: Path) -> None:
    controller.shell(JOB, f"sh -c 'echo $$ > {tmp_path / 'pid'}; kill -STOP $$; sleep 600' & wait")
    halted = number_in(tmp_path / "pid")

    controller.ask("stop", job=JOB, grace_ms=20_000)

    assert controller.wait_exit(JOB)["stopped"]
    assert not alive(halted)


def test_a_tree_that_forks_for_ever_is_stopped(controller: Controller) -> None:
    # Each one starts the next and ends: there is always one that no look has seen.
    chain = "import os, sys\nwhile True:\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n"
    controller.shell(JOB, f"{sys.executable} -c '{chain}'; sleep 600")

    controller.ask("stop", job=JOB, grace_ms=0)

    assert controller.wait_exit(JOB)["stopped"]


def test_a_second_stop_only_shortens(controller: Controller) -> None:
    controller.shell(JOB, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    controller.wait("output", job=JOB)
    began = time.monotonic()

    controller.ask("stop", job=JOB, grace_ms=60_000)
    assert controller.ask("list")["jobs"][0]["stopping"]
    controller.ask("stop", job=JOB, grace_ms=50)
    controller.ask("stop", job=JOB, grace_ms=60_000)

    assert controller.wait_exit(JOB)["signal"] == signal.SIGKILL
    assert time.monotonic() - began < 30


def test_a_stop_goes_on_without_its_controller(host: HostUnderTest, controller: Controller) -> None:
    pid = controller.shell(JOB, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
    controller.wait("output", job=JOB)
    controller.ask("stop", job=JOB, grace_ms=200)
    controller.close()

    later = host.stranger()
    exits = later.hello()["exits"] or [later.wait_exit(JOB)]

    assert exits[0]["stopped"]
    assert not alive(pid)


def test_a_stop_of_what_never_was_is_refused_and_of_what_is_over_is_fine(
    controller: Controller,
) -> None:
    assert controller.refusal("stop", job=JOB, grace_ms=0) == "unknown"
    controller.shell(JOB, "exit 0")
    controller.wait_exit(JOB)
    assert controller.ask("stop", job=JOB, grace_ms=0)["ok"]


def test_what_a_job_leaves_is_stopped_before_its_exit_is_told(
    controller: Controller, tmp_path: Path
) -> None:
    controller.shell(
        JOB, f"{escape(tmp_path / 'deaf')}; sleep 600 & echo $! > {tmp_path / 'plain'}"
    )
    plain = number_in(tmp_path / "plain")

    seen = controller.wait_exit(JOB)

    deaf = number_in(tmp_path / "deaf")
    assert (seen["exit_code"], seen["stopped"], seen["survivors"]) == (0, False, [])
    assert not alive(plain)
    assert not alive(deaf)


def test_what_one_job_leaves_is_not_taken_for_another_s(
    controller: Controller, tmp_path: Path
) -> None:
    """An orphan of a job that runs on is left alone when another job ends."""
    controller.shell("run/lasting/1", f"{escape(tmp_path / 'pid')}; sleep 600")
    orphan = number_in(tmp_path / "pid")

    controller.shell(JOB, "exit 0")
    controller.wait_exit(JOB)

    assert alive(orphan)
    controller.ask("stop", job="run/lasting/1", grace_ms=0)
    controller.wait_exit("run/lasting/1")
    assert not alive(orphan)


@pytest.mark.parametrize("pipe", ["", ">/dev/null 2>&1"])
def test_kept_children_outlive_the_job_and_hold_up_nothing(
    controller: Controller, tmp_path: Path, pipe: str
) -> None:
    script = f"(while sleep 0.01; do echo more; done) {pipe} & echo $! > {tmp_path / 'pid'}; exit 3"
    controller.shell(JOB, script, keep_children=True)

    assert controller.wait_exit(JOB)["exit_code"] == 3

    kept = number_in(tmp_path / "pid")
    controller.ask("forget", jobs=[JOB])
    controller.shell("run/other/1", "sleep 0.1")
    controller.wait_exit("run/other/1")
    assert alive(kept)
    os.kill(kept, signal.SIGKILL)


def test_a_stop_takes_the_children_of_a_job_that_keeps_them(
    controller: Controller, tmp_path: Path
) -> None:
    script = f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait"
    controller.shell(JOB, script, keep_children=True)
    child = number_in(tmp_path / "pid")

    controller.ask("stop", job=JOB, grace_ms=1000)

    controller.wait_exit(JOB)
    assert not alive(child)
