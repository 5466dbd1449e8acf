"""The units as a user has them, kept by a real systemd: installed, started, killed, taken away."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from crewd.host.protocol import IDLE_EXIT_SECONDS
from tests.systemd.machine import CREW, CREWD, UNTIL_GO, Machine, Worker, eventually

UNIT, HOST_UNIT = "crewd.service", "crewd-host.service"


def main_pid(machine: Machine, unit: str = UNIT) -> int:
    return int(machine.show(unit, "MainPID"))


def pinged_for(machine: Machine) -> float:
    """Return the seconds from the start of the daemon to its latest ping."""
    names = ("WatchdogTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    ping, start = (int(machine.show(UNIT, name)) for name in names)
    return (ping - start) / 1e6


def ended(machine: Machine, worker: Worker) -> str:
    """Let a worker end and return what its run came to."""
    worker.go()
    return machine.user(CREW, "wait", worker.run_id)


def test_the_units_are_started_ready_and_tell_how_they_are(served: Machine) -> None:
    assert served.show(UNIT, "ActiveState") == served.show(HOST_UNIT, "ActiveState") == "active"
    assert main_pid(served) == served.daemon()
    worker = served.run(UNTIL_GO)
    eventually(lambda: served.show(UNIT, "StatusText") == "1 run", "the run is counted")
    assert len(served.processes(UNIT)) == 1
    ended(served, worker)
    eventually(lambda: served.show(UNIT, "StatusText") == "no runs", "the end is counted")
    assert f"{UNIT}: active (running), pid {served.daemon()}: no runs" in served.crewd(
        "service", "status"
    )


def test_the_daemon_writes_its_own_places_and_reads_all_others(served: Machine) -> None:
    (pid,) = served.processes(UNIT)
    inside = Path(f"/proc/{pid}/root")
    for closed in (served.home, Path("/etc"), Path("/tmp"), served.runtime):  # noqa: S108
        with pytest.raises(OSError, match="Read-only file system"):
            (inside / closed.relative_to("/") / "new").touch()
    for own in (served.state_dir, served.runtime / "crewd"):
        (inside / own.relative_to("/") / "new").touch()
    status = (Path(f"/proc/{pid}") / "status").read_text().split("\n")
    assert {"NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000"} <= {*status}
    (host,) = served.processes(HOST_UNIT)
    assert "Seccomp:\t0" in Path(f"/proc/{host}/status").read_text().split("\n")


def test_a_daemon_that_hangs_is_killed_and_started_again(served: Machine) -> None:
    served.drop_in(UNIT, "[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n")
    served.systemctl("restart", UNIT)
    worker = served.run(UNTIL_GO)
    before = served.daemon()
    eventually(lambda: pinged_for(served) > 2 * 2, "one that lives is watched for a while")
    assert (served.show(UNIT, "NRestarts"), served.daemon()) == ("0", before)
    os.kill(served.processes(UNIT)[0], signal.SIGSTOP)
    eventually(lambda: served.show(UNIT, "NRestarts") == "1", "systemd restarts it")
    eventually(lambda: served.daemon() not in {0, before}, "another daemon runs")
    assert "completed" in ended(served, worker)


def test_workers_go_on_while_the_daemon_is_restarted_and_stopped(served: Machine) -> None:
    worker = served.run(UNTIL_GO)
    before, processes = served.daemon(), served.processes(HOST_UNIT)
    served.systemctl("restart", UNIT)
    assert served.daemon() not in {0, before}
    assert served.processes(HOST_UNIT)[:2] == processes[:2]
    served.systemctl("stop", UNIT)
    assert served.daemon() == 0
    assert served.processes(HOST_UNIT)[:2] == processes[:2]
    served.crewd("ensure")
    assert main_pid(served) == served.daemon() != 0
    pid = (worker.folder / "pid").read_text()
    assert "completed" in ended(served, worker)
    assert (worker.folder / "pid").read_text() == pid


def test_workers_of_a_killed_host_are_gone_and_the_host_is_back(served: Machine) -> None:
    served.run("trap : HUP", UNTIL_GO)
    host, worker, *_ = served.processes(HOST_UNIT)
    os.kill(host, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{worker}").exists(), "the worker is gone")
    eventually(lambda: served.show(HOST_UNIT, "NRestarts") == "1", "systemd restarts the host")
    eventually(lambda: "host: crewd" in served.crewd("status"), "the daemon has found it")


def test_to_stop_the_host_ends_all_workers(served: Machine) -> None:
    served.run("sleep 1000 & setsid sleep 1000 &", UNTIL_GO)
    assert len(served.processes(HOST_UNIT)) >= 4
    served.systemctl("stop", HOST_UNIT)
    assert served.processes(HOST_UNIT) == []
    assert served.show(UNIT, "ActiveState") == "active"


def test_a_host_that_hangs_does_not_keep_its_workers_from_ending(served: Machine) -> None:
    served.drop_in(HOST_UNIT, "[Service]\nTimeoutStopSec=1\n")
    served.run("trap : TERM", "setsid sh -c 'trap : TERM; while :; do sleep 1; done' &", UNTIL_GO)
    host, *workers = served.processes(HOST_UNIT)
    assert len(workers) >= 2
    os.kill(host, signal.SIGSTOP)
    served.systemctl("stop", HOST_UNIT)
    assert served.processes(HOST_UNIT) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in (host, *workers))


def test_a_host_waits_for_a_daemon_that_is_slow_to_start(served: Machine) -> None:
    served.systemctl("stop", UNIT)
    host = main_pid(served, HOST_UNIT)
    slow = f"ExecStartPre=/bin/sleep {IDLE_EXIT_SECONDS + 1}"
    served.drop_in(UNIT, f"[Service]\n{slow}\n")
    served.systemctl("start", UNIT)
    assert main_pid(served, HOST_UNIT) == host
    assert "completed" in ended(served, served.run(UNTIL_GO))


def test_what_clients_know_of_a_stopped_daemon_is_its_own(served: Machine) -> None:
    (pid,) = served.processes(UNIT)
    assert "Umask:\t0077" in Path(f"/proc/{pid}/status").read_text().split("\n")
    folder = f"{served.runtime}/crewd"
    before = served.user("stat", "--format=%a %i", folder)
    assert before.startswith("700 ")
    served.systemctl("stop", UNIT)
    assert served.user("stat", "--format=%a %i", folder) == before


def test_ensure_starts_the_enabled_unit_without_the_variables_of_a_session(served: Machine) -> None:
    served.crewd("stop")
    assert served.show(UNIT, "ActiveState") == "inactive"
    served.crewd("ensure", XDG_RUNTIME_DIR="", USER="")
    assert main_pid(served) == served.daemon() != 0
    assert "no daemon runs" not in served.crewd("status", XDG_RUNTIME_DIR="")


def test_ensure_tells_that_the_unit_does_not_start(served: Machine) -> None:
    served.crewd("stop")
    served.paths.token.chmod(0o644)
    said = served.crewd("ensure", check=False)
    assert "error: the daemon could not be started by its unit crewd.service" in said
    assert f"error: others can read or change the token {served.paths.token}" in said
    assert "hint: systemctl --user status crewd.service" in said
    assert "has failed (exit-code)" in served.crewd("doctor", check=False)
    served.paths.token.chmod(0o600)
    served.crewd("ensure")
    assert main_pid(served) == served.daemon() != 0


def test_the_unit_is_not_started_beside_a_daemon_that_runs(machine: Machine) -> None:
    machine.crewd("ensure")
    daemon = machine.daemon()
    said = machine.crewd("service", "install", "--now", check=False)
    assert "that the unit did not start" in said
    assert f"crewd stop --state-dir {machine.state_dir}" in said
    assert not machine.units.exists()
    assert "a daemon runs already" in machine.crewd("service", "install")
    machine.systemctl("start", UNIT, check=False)
    assert (machine.show(UNIT, "ActiveState"), machine.daemon()) == ("failed", daemon)
    machine.crewd("stop")
    machine.systemctl("start", UNIT)
    assert main_pid(machine) == machine.daemon() != daemon


def test_a_unit_is_not_taken_from_one_state_directory_to_another(served: Machine) -> None:
    other, daemon = served.home / "other", served.daemon()
    for now in ((), ("--now",)):
        said = served.crewd("service", "install", *now, "--state-dir", str(other), check=False)
        assert f"{UNIT} keeps the daemon of {served.state_dir}" in said
        assert f"it cannot keep that of {other}" in said
        assert "crewd service uninstall" in said
    assert not other.exists()
    assert served.show(UNIT, "NeedDaemonReload") == "no"
    assert served.daemon() == daemon


def test_a_unit_that_starts_the_daemon_of_another_is_no_success(machine: Machine) -> None:
    machine.crewd("service", "install")
    other = f"{machine.runtime}/crewd/other"
    start = f"ExecStart={CREWD} serve --host connect --state-dir {other}"
    machine.drop_in(UNIT, f"[Service]\nExecStart=\n{start}\n")
    said = machine.crewd("service", "install", "--now", check=False)
    assert f"has started pid {main_pid(machine)}, but the daemon of {machine.state_dir}" in said
    assert "systemctl --user cat crewd.service" in said


@pytest.mark.parametrize("place", [UNIT, HOST_UNIT, f"{UNIT}.d/sandbox.conf"])
def test_files_of_a_person_are_neither_replaced_nor_removed(machine: Machine, place: str) -> None:
    file = machine.units / place
    machine.user("mkdir", "-p", str(file.parent))
    file.write_text("# mine\n")
    for now in ((), ("--now",)):
        said = machine.crewd("service", "install", *now, check=False)
        assert f"not written by `crewd service install`, so all is left alone: {file}" in said
        assert f"mv {file} {file}.old" in said
    assert [path for path in machine.units.rglob("*") if path.is_file()] == [file]
    file.rename(f"{file}.old")
    machine.crewd("service", "install", "--now")
    daemon = machine.daemon()
    file.write_text("# mine\n")
    assert f"left alone: {file}" in machine.crewd("service", "uninstall", check=False)
    assert (machine.daemon(), file.read_text()) == (daemon, "# mine\n")
    assert (machine.units / UNIT).exists()
    assert (machine.units / "default.target.wants" / UNIT).is_symlink()


def test_what_is_uninstalled_is_gone_but_for_the_workers(served: Machine) -> None:
    worker = served.run(UNTIL_GO)
    said = served.crewd("service", "uninstall")
    assert "the host goes on until its workers have ended" in said
    assert [path for path in served.units.rglob("*") if not path.is_dir()] == []
    assert served.daemon() == 0
    assert len(served.processes(HOST_UNIT)) >= 2
    worker.go()
    eventually(lambda: len(served.processes(HOST_UNIT)) == 1, "the worker has ended well")


def test_where_the_sandbox_cannot_be_tried_the_rest_of_the_hardening_holds(
    machine: Machine,
) -> None:
    few = machine.home / "few"
    few.mkdir()
    (few / "systemctl").symlink_to("/usr/bin/systemctl")
    said = machine.crewd("service", "install", "--now", PATH=str(few))
    assert "no sandbox" in said
    assert not (machine.units / "crewd.service.d").exists()
    (pid,) = machine.processes(UNIT)
    status = Path(f"/proc/{pid}/status").read_text().split("\n")
    assert {"NoNewPrivs:\t1", "Seccomp:\t2"} <= {*status}
    assert "completed" in ended(machine, machine.run(UNTIL_GO))
    assert "restart crewd.service" in machine.crewd("service", "install")
    assert (machine.units / "crewd.service.d/sandbox.conf").exists()
