from __future__ import annotations

import os
import signal

from crewd.core.model import Attempt, Survivor
from crewd.core.words import AttemptStatus
from crewd.doctor import orphans
from crewd.doctor.finding import Finding, Severity
from crewd.host.protocol import ATTEMPT_VARIABLE, HostPaths, secret
from crewd.host.tree import read_process
from crewd.store.queries import SQL
from crewd.store.rows import ATTEMPT
from tests.doctor.patient import Patient
from tests.host.driver import eventually, number_in

SLEEP = "import time; time.sleep(600)"


def marked(patient: Patient) -> int:
    """Start a process that bears the mark of this store in its environment only."""
    paths = HostPaths(patient.state_dir)
    paths.make_private()
    mark = f"{secret(paths.marker)}/run_1/build/2"
    return patient.child(SLEEP, {ATTEMPT_VARIABLE: mark})


def of(found: list[Finding], pid: int) -> Finding:
    (finding,) = (each for each in found if each.details.get("pid") == str(pid))
    return finding


def test_without_a_marker_no_worker_ever_ran(patient: Patient) -> None:
    assert patient.found(orphans.processes) == []


def test_the_jobs_of_a_host_are_no_orphans(patient: Patient) -> None:
    host = patient.host()
    controller = host.controller()
    note = patient.root / "pid"
    controller.shell(
        "run/task/1", f"setsid sh -c 'echo $$ >{note}; exec sleep 600' & exec sleep 600"
    )
    escaped = number_in(note)
    assert patient.is_well(orphans.processes)
    os.kill(escaped, signal.SIGKILL)


def test_a_marked_process_without_a_host_is_stopped_by_the_next_one(patient: Patient) -> None:
    pid = marked(patient)
    found = of(patient.found(orphans.processes), pid)
    assert found.severity is Severity.WARNING
    assert found.details["job"] == "run_1/build/2"
    assert found.command == f"crewd ensure --state-dir {patient.state_dir}"
    patient.host()
    eventually(lambda: patient.is_well(orphans.processes))


def test_a_marked_process_beside_the_host_is_ended_by_hand(patient: Patient) -> None:
    patient.host()
    pid = marked(patient)
    found = of(patient.found(orphans.processes), pid)
    assert (found.severity, found.command) == (Severity.WARNING, f"kill -9 {pid}")
    assert patient.mended(orphans.processes, found)


def test_children_that_a_task_was_told_to_keep_are_worth_knowing_only(patient: Patient) -> None:
    host = patient.host()
    controller = host.controller()
    note = patient.root / "pid"
    script = f"setsid sh -c 'echo $$ >{note}; exec sleep 600' & exit 0"
    controller.shell("run/task/1", script, keep_children=True)
    kept = number_in(note)
    controller.wait_exit("run/task/1")
    assert patient.is_well(orphans.processes)
    host.kill()
    found = of(patient.found(orphans.processes), kept)
    assert (found.severity, found.command) == (Severity.INFO, "")
    os.kill(kept, signal.SIGKILL)


def survivor(patient: Patient, pid: int, command: str) -> None:
    """Have an attempt recorded as ended with this process not proven gone."""
    patient.database()
    row = Attempt(
        run_id="run_1",
        task_id="build",
        number=2,
        status=AttemptStatus.ENDED,
        survivors=(Survivor(pid=pid, command=command),),
    )
    patient.execute(SQL["insert_attempt"], *ATTEMPT.fixed(row), *ATTEMPT.body(row))


def test_a_survivor_that_still_lives_is_named(patient: Patient) -> None:
    pid = marked(patient)
    (said,) = (f.message for f in patient.found(orphans.processes) if str(pid) in f.message)
    survivor(patient, pid, said.partition("(")[2].partition(") of")[0])
    found = patient.one(orphans.survivors, "orphans.survivors")
    assert (found.severity, found.command) == (Severity.WARNING, f"kill -9 {pid}")
    assert found.details["attempt"] == "run_1/build/2"
    assert patient.mended(orphans.survivors, found)


def test_another_process_that_got_the_pid_of_a_survivor_is_not_blamed(patient: Patient) -> None:
    survivor(patient, os.getpid(), "sleep 600")
    assert read_process(os.getpid()) is not None
    assert patient.found(orphans.survivors) == []
