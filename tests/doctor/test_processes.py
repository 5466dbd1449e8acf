from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from crewd import __version__
from crewd.doctor import processes
from crewd.doctor.finding import Severity
from crewd.life import PROTOCOL
from crewd_client.locate import DaemonFile
from tests.doctor.patient import Patient

SLEEP = "import time; time.sleep(600)"


def daemon_file(patient: Patient, *, pid: int, protocol: int = PROTOCOL) -> Path:
    told = DaemonFile(
        protocol=protocol,
        instance_id="one",
        store_id="store",
        pid=pid,
        version=__version__,
        socket=str(patient.place.socket),
        token_file=str(patient.place.paths.token),
        state_dir=str(patient.state_dir),
    )
    patient.place.paths.daemon_file.write_text(told.text())
    return patient.place.paths.daemon_file


def test_where_nothing_runs_that_is_all_there_is_to_say(patient: Patient) -> None:
    found = [f for check in processes.CHECKS for f in patient.found(check)]
    assert [(f.id, f.severity) for f in found] == [
        ("daemon.running", Severity.INFO),
        ("host.running", Severity.INFO),
    ]


def test_a_daemon_that_listens_is_well(patient: Patient) -> None:
    daemon_file(patient, pid=patient.hold().pid)
    patient.listen()
    assert patient.is_well(processes.daemon)
    assert patient.is_well(processes.daemon_socket)


def test_what_a_killed_daemon_left_is_told_with_its_pid(patient: Patient) -> None:
    daemon_file(patient, pid=4194300)
    found = patient.one(processes.daemon, "daemon.file")
    assert (found.severity, found.details["pid"]) == (Severity.WARNING, "4194300")
    assert found.command == f"crewd ensure --state-dir {patient.state_dir}"


@pytest.mark.parametrize("text", ["", "[]", "{}", "\xff"])
def test_a_daemon_file_that_cannot_be_read_is_a_warning(patient: Patient, text: str) -> None:
    patient.place.paths.daemon_file.write_text(text, encoding="latin-1")
    found = patient.one(processes.daemon, "daemon.file")
    assert found.severity is Severity.WARNING
    assert found.command.startswith(f"rm {patient.place.paths.daemon_file};")


def test_a_daemon_file_of_another_process_is_a_warning(patient: Patient) -> None:
    patient.hold()
    daemon_file(patient, pid=4194300)
    found = patient.one(processes.daemon, "daemon.file")
    assert found.details == {"pid": "4194300", "holder": str(os.getpid())}


@pytest.mark.parametrize(("version", "protocol"), [("0.0.9", PROTOCOL), (__version__, 0)])
def test_a_daemon_of_another_version_needs_a_restart(
    patient: Patient, version: str, protocol: int
) -> None:
    daemon_file(patient, pid=patient.hold(version=version).pid, protocol=protocol)
    found = patient.one(processes.daemon, "daemon.version")
    assert found.severity is Severity.WARNING
    assert found.details == {
        "daemon": version,
        "installed": __version__,
        "protocol": str(protocol),
    }
    assert found.command.startswith("crewd stop --state-dir")


def test_a_daemon_that_was_stopped_by_a_signal_is_an_error(patient: Patient) -> None:
    pid = patient.child(SLEEP)
    patient.hold(pid=pid)
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    found = patient.one(processes.daemon, "daemon.running")
    assert (found.severity, found.command) == (Severity.ERROR, f"kill -CONT {pid}")


def test_a_daemon_without_its_socket_is_an_error(patient: Patient) -> None:
    patient.hold()
    found = patient.one(processes.daemon_socket, "daemon.socket")
    assert found.severity is Severity.ERROR
    assert "No such file" in found.message


def test_a_stranger_at_the_socket_is_a_warning(patient: Patient) -> None:
    patient.listen()
    found = patient.one(processes.daemon_socket, "daemon.socket")
    assert (found.severity, found.command) == (Severity.WARNING, "crewd where")


def test_a_host_is_asked_without_taking_it_from_its_daemon(patient: Patient) -> None:
    host = patient.host()
    controller = host.controller()
    assert patient.is_well(processes.host)
    assert controller.ask("ping")["ok"]


def test_a_host_that_was_stopped_by_a_signal_is_an_error(patient: Patient) -> None:
    host = patient.host()
    os.kill(host.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, host.pid, os.WSTOPPED | os.WNOWAIT)
    found = patient.one(processes.host, "host.running")
    assert (found.severity, found.command) == (Severity.ERROR, f"kill -CONT {host.pid}")


def test_a_host_whose_socket_is_gone_is_an_error(patient: Patient) -> None:
    host = patient.host()
    host.paths.socket.unlink()
    found = patient.one(processes.host, "host.running")
    assert found.severity is Severity.ERROR
    assert "No such file" in found.message
    assert found.command.startswith(f"kill -9 {host.pid}; crewd ensure")


def test_a_host_of_another_version_needs_a_restart_when_its_workers_have_ended(
    patient: Patient,
) -> None:
    host = patient.host()
    told = json.loads(host.paths.info.read_text())
    host.paths.info.write_text(json.dumps({**told, "version": "0.0.9"}))
    found = patient.one(processes.host, "host.version")
    assert (found.severity, found.details["version"]) == (Severity.WARNING, "0.0.9")
    assert found.command.startswith("crewd drain")


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_host_that_did_not_say_who_it_is_is_asked_all_the_same(
    patient: Patient, text: str
) -> None:
    host = patient.host()
    host.paths.info.write_text(text)
    found = patient.one(processes.host, "host.running")
    assert found.severity is Severity.OK
