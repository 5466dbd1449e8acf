from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from crewd.host.protocol import EXIT_ANOTHER_HOST, HostPaths
from tests.host.driver import Controller, HostUnderTest, alive, eventually, number_in

JOB = "run/task/1"
DEAF = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {file}; sleep 600; sleep 600' & wait; wait"


def test_a_second_host_of_a_state_directory_is_refused(
    host: HostUnderTest, controller: Controller
) -> None:
    second = host.launch()

    _, complaint = second.communicate()

    assert second.returncode == EXIT_ANOTHER_HOST
    assert f"pid {host.pid}" in complaint.decode()
    assert str(host.paths.socket) in complaint.decode()
    assert controller.ask("ping")["ok"]


def test_an_idle_host_ends_and_leaves_nothing_to_connect_to(host: HostUnderTest) -> None:
    host.start("--idle-exit", "0.2")
    controller = host.controller()
    controller.shell(JOB, "exit 0")
    controller.wait_exit(JOB)
    controller.ask("forget", jobs=[JOB])
    controller.close()

    assert host.wait() == 0

    assert not host.paths.socket.exists()
    assert not host.paths.info.exists()
    assert not host.paths.journal.exists()


def test_a_host_with_a_live_job_stays_and_keeps_its_exit(host: HostUnderTest) -> None:
    host.start("--idle-exit", "0.1")
    controller = host.controller()
    controller.shell(JOB, "sleep 0.6; echo done; exit 6")
    controller.close()

    assert host.wait() == 0

    host.start()
    (seen,) = host.controller().ask("list")["exits"]
    assert (seen["job"], seen["exit_code"], seen["stdout"]) == (JOB, 6, 5)
    assert host.spooled(JOB) == b"done\n"


def test_terminated_it_stops_all_jobs_and_ends(
    host: HostUnderTest, controller: Controller, tmp_path: Path
) -> None:
    controller.shell(JOB, f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait")
    child = number_in(tmp_path / "pid")

    os.kill(host.pid, signal.SIGTERM)

    assert controller.wait_exit(JOB)["stopped"]
    assert host.wait() == 0
    assert not alive(child)


def test_a_terminal_that_goes_does_not_end_it(host: HostUnderTest, controller: Controller) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(host.pid, number)

    assert controller.ask("ping")["ok"]


def test_a_shutdown_is_refused_while_jobs_are_live(
    host: HostUnderTest, controller: Controller
) -> None:
    controller.shell(JOB, "sleep 600")

    assert controller.refusal("shutdown", stop_jobs=False) == "busy"

    assert controller.ask("shutdown", stop_jobs=True)["ok"]
    assert controller.wait_exit(JOB)["stopped"]
    assert host.wait() == 0


def test_a_new_host_kills_what_a_killed_one_left_before_it_answers(
    host: HostUnderTest, controller: Controller, tmp_path: Path
) -> None:
    worker = controller.shell(JOB, DEAF.format(file=tmp_path / "pid"))
    child = number_in(tmp_path / "pid")
    host.kill()
    assert alive(child)

    host.start()

    assert not alive(worker)
    assert not alive(child)
    found = host.controller().ask("list")
    assert [lost["job"] for lost in found["lost"]] == [JOB]
    assert found["strays"] == []


def test_output_of_a_lost_job_is_kept_until_it_is_forgotten(
    host: HostUnderTest, controller: Controller
) -> None:
    controller.shell(JOB, "echo before; echo err >&2; sleep 600")
    controller.wait("output", job=JOB, stdout=7, stderr=4)
    epoch = controller.epoch
    host.kill()

    host.start()
    controller = host.controller()

    assert controller.ask("list")["lost"] == [
        {"job": JOB, "epoch": epoch, "stdout": 7, "stderr": 4}
    ]
    assert host.spooled(JOB) == b"before\n"
    assert controller.refusal("start", **controller.order(JOB, "/bin/true")) == "lost"
    controller.ask("forget", jobs=[JOB])
    assert list(host.paths.spool.iterdir()) == []
    assert controller.ask("list")["lost"] == []


def test_a_new_host_spares_children_that_an_ended_job_was_told_to_keep(
    host: HostUnderTest, controller: Controller, tmp_path: Path
) -> None:
    script = f"sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path / 'pid'}"
    controller.shell(JOB, script, keep_children=True)
    controller.wait_exit(JOB)
    kept = number_in(tmp_path / "pid")
    controller.shell("run/lost/1", "sleep 600", keep_children=True)
    lost = controller.ask("list")["jobs"][0]["pid"]
    host.kill()

    host.start()

    assert alive(kept)
    assert not alive(lost)
    os.kill(kept, signal.SIGKILL)


def test_a_host_without_its_state_directory_stops_its_jobs_and_ends(
    host: HostUnderTest, controller: Controller
) -> None:
    worker = controller.shell(JOB, "sleep 600")
    controller.close()
    shutil.rmtree(host.paths.root.parent)

    assert host.wait() == 0

    assert not alive(worker)
    assert not host.paths.root.parent.exists()


def test_an_exit_survives_the_death_of_the_host(
    host: HostUnderTest, controller: Controller
) -> None:
    controller.shell(JOB, "echo out; exit 8")
    controller.wait_exit(JOB)
    epoch = controller.epoch
    host.kill()

    host.start()
    controller = host.controller()

    found = controller.ask("list")
    (seen,) = found["exits"]
    assert (seen["job"], seen["epoch"], seen["exit_code"]) == (JOB, epoch, 8)
    assert found["lost"] == []
    assert controller.start(JOB, "/bin/true")["ended"]
    controller.ask("forget", jobs=[JOB])
    host.kill()

    host.start()
    assert host.controller().ask("list")["exits"] == []


def test_a_long_state_directory_has_its_socket_elsewhere(tmp_path: Path) -> None:
    host = HostUnderTest(tmp_path / ("long" * 40))
    short = tmp_path / "r"
    short.mkdir(mode=0o700)
    environment = {"XDG_RUNTIME_DIR": str(short)}
    popen = host.launch(env=environment)

    eventually(lambda: list(short.glob("crewd/*-host.sock")))

    os.kill(popen.pid, signal.SIGTERM)
    popen.communicate()
    assert popen.returncode == 0


def test_the_socket_stays_in_the_state_directory_when_it_fits(tmp_path: Path) -> None:
    assert HostPaths(Path("/s")).socket == Path("/s/host/host.sock")
    assert HostPaths(tmp_path).socket.parent == HostPaths(tmp_path).root
