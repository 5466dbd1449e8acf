"""The unit files themselves, judged by systemd's own tools."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from crewd.host.protocol import EXIT_ANOTHER_HOST
from crewd.refusal import Exit, Refusal
from crewd.systemd.units import (
    HOST_UNIT,
    SANDBOX,
    UNIT,
    Installation,
    differing,
    find_installed,
    foreign,
    remove,
    sandbox_properties,
    this_command,
    unit_folder,
    write,
)
from tests.architecture.sources import ROOT

SHIPPED: Final = ROOT / "systemd"
MOST_EXPOSED: Final = {False: 60, True: 15}
"""In tenths. Judged as a service of the system: capabilities count that no user's has."""
ODD_NAMES: Final = ("plain", "with space", "100%h", "$HOME", 'a"b', "back\\slash", "ünï", "a;b'c")
DESIGNED: Final = {
    UNIT: {
        "Type": "notify",
        "NotifyAccess": "main",
        "Wants": HOST_UNIT,
        "After": HOST_UNIT,
        "WatchdogSec": "30",
        "Restart": "on-failure",
        "KillMode": "mixed",
        "UMask": "0077",
        "LimitCORE": "0",
        "RuntimeDirectory": "crewd",
        "RuntimeDirectoryMode": "0700",
        "RuntimeDirectoryPreserve": "yes",
        "NoNewPrivileges": "yes",
        "RestrictAddressFamilies": "AF_UNIX",
        "WantedBy": "default.target",
    },
    HOST_UNIT: {
        "Type": "notify",
        "NotifyAccess": "main",
        "Restart": "on-failure",
        "KillMode": "control-group",
        "Delegate": "yes",
        "OOMPolicy": "continue",
        "TasksMax": "infinity",
        "TimeoutStopSec": "90",
        # Workers may do what their user may.
        "NoNewPrivileges": None,
        "SystemCallFilter": None,
        "UMask": None,
        "WatchdogSec": None,
    },
    Path(SANDBOX).name: {
        "PrivateUsers": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "read-only",
        "ReadWritePaths": "-%h/.local/state/crewd",
        "CapabilityBoundingSet": "",
    },
}

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def an_installation(root: Path, name: str = "plain") -> Installation:
    command = root / name / "crewd"
    command.parent.mkdir(exist_ok=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    state_dir = root / name / "state"
    env = {"HOME": str(root), "XDG_CONFIG_HOME": str(root / "config")}
    return Installation(command=(str(command),), state_dir=state_dir, env=env)


def verified(root: Path, folder: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", folder / UNIT, folder / HOST_UNIT],
        env={"HOME": str(root), "XDG_RUNTIME_DIR": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 and not done.stderr else f"{done.returncode} {done.stderr}"


@needs_systemd
def test_the_units_that_come_with_crewd_are_in_order_as_they_are(tmp_path: Path) -> None:
    command = tmp_path / ".local/bin/crewd"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    folder = tmp_path / "units"
    folder.mkdir()
    for name in (UNIT, HOST_UNIT):
        shutil.copy(SHIPPED / name, folder)
    assert verified(tmp_path, folder) == ""


@needs_systemd
@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_units_of_an_installation_are_in_order_wherever_it_is(
    tmp_path: Path, name: str
) -> None:
    # No unit can name a program with such characters, but any other path.
    installation = an_installation(tmp_path, "plain" if {*name} & {*"\"'\\"} else name)
    installation = replace(installation, state_dir=tmp_path / name / "state")
    folder = unit_folder(installation.env)
    write(folder, installation.texts(sandbox=True))
    assert verified(tmp_path, folder) == ""
    found = find_installed(installation.env)
    assert found is not None
    assert found.state_dir == installation.state_dir


@needs_systemd
@pytest.mark.parametrize("sandbox", [False, True])
def test_the_daemon_is_exposed_to_little(tmp_path: Path, *, sandbox: bool) -> None:
    write(tmp_path, an_installation(tmp_path).texts(sandbox=sandbox))
    judge = ("systemd-analyze", "security", "--no-pager", "--offline=true")
    done = subprocess.run(
        [*judge, f"--threshold={MOST_EXPOSED[sandbox]}", tmp_path / UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def settings(name: str) -> dict[str, str]:
    """Return what a file of units that comes with crewd sets, each by its last value."""
    lines = (SHIPPED / name).read_text().splitlines()
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {setting: value for setting, equals, value in pairs if equals}


@pytest.mark.parametrize(("name", "wanted"), DESIGNED.items())
def test_the_units_set_what_the_design_names(name: str, wanted: dict[str, str | None]) -> None:
    found = settings(name)
    assert {setting: found.get(setting) for setting in wanted} == wanted


def test_neither_unit_ends_with_the_other() -> None:
    tied = {"BindsTo", "Requires", "Requisite", "PartOf", "Upholds", "Conflicts"}
    assert not tied & {*settings(UNIT), *settings(HOST_UNIT)}


def test_an_idle_host_waits_for_longer_than_the_daemon_may_take() -> None:
    words, daemon = settings(HOST_UNIT)["ExecStart"].split(), settings(UNIT)
    patience = int(words[words.index("--idle-exit") + 1])
    phases = ("TimeoutStopSec", "TimeoutAbortSec", "RestartSec", "TimeoutStartSec")
    assert patience > sum(int(daemon[phase]) for phase in phases)


def test_what_would_end_alike_is_not_tried_again() -> None:
    refused = {Exit.USAGE, Exit.REFUSED}
    for name, codes in {UNIT: refused, HOST_UNIT: refused | {EXIT_ANOTHER_HOST}}.items():
        assert {int(code) for code in settings(name)["RestartPreventExitStatus"].split()} == codes


def test_units_that_were_written_are_found_and_as_they_should_be(tmp_path: Path) -> None:
    installation = an_installation(tmp_path)
    assert find_installed(installation.env) is None
    folder = unit_folder(installation.env)
    write(folder, installation.texts(sandbox=True))
    found = find_installed(installation.env)
    assert found is not None
    assert (found.sandbox, found.enabled) == (True, False)
    assert foreign(folder) == []
    assert differing(found, installation) == []
    moved = replace(installation, command=("/elsewhere/crewd",))
    assert differing(found, moved) == [UNIT, HOST_UNIT]
    (folder / HOST_UNIT).unlink()
    assert differing(found, installation) == [HOST_UNIT]


def test_a_sandbox_that_does_not_work_any_more_is_taken_away(tmp_path: Path) -> None:
    installation = an_installation(tmp_path)
    write(tmp_path, installation.texts(sandbox=True))
    write(tmp_path, installation.texts(sandbox=False))
    assert not (tmp_path / SANDBOX).parent.exists()
    write(tmp_path, installation.texts(sandbox=True))
    own = (tmp_path / SANDBOX).with_name("own.conf")
    own.touch()
    remove(tmp_path)
    assert [path for path in tmp_path.rglob("*.*") if path.is_file()] == [own]


def test_units_that_a_person_put_there_are_not_ours(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    folder = unit_folder(env)
    folder.mkdir(parents=True)
    shutil.copy(SHIPPED / UNIT, folder)
    found = find_installed(env)
    assert found is not None
    assert foreign(folder) == [folder / UNIT]
    assert found.state_dir == tmp_path / ".local/state/crewd"
    (folder / UNIT).write_text("[Service]\nExecStart=/bin/crewd serve\n")
    found = find_installed(env)
    assert found is not None
    assert found.state_dir is None


@pytest.mark.parametrize("place", [UNIT, HOST_UNIT, SANDBOX])
def test_what_a_person_put_in_the_place_of_a_file_of_ours_is_told(
    tmp_path: Path, place: str
) -> None:
    write(tmp_path, an_installation(tmp_path).texts(sandbox=True))
    file = tmp_path / place
    ours = file.rename(tmp_path / "ours")
    assert foreign(tmp_path) == []
    for make in (file.touch, file.mkdir, partial(file.symlink_to, ours)):
        make()
        assert foreign(tmp_path) == [file]
        file.rmdir() if make == file.mkdir else file.unlink()
    file.symlink_to("/dev/null")  # Masked.
    assert foreign(tmp_path) == [file]


def test_a_folder_that_a_person_keeps_elsewhere_is_theirs(tmp_path: Path) -> None:
    write(tmp_path, an_installation(tmp_path).texts(sandbox=True))
    folder = (tmp_path / SANDBOX).parent
    folder.symlink_to(folder.rename(tmp_path / "elsewhere"))
    assert foreign(tmp_path) == [folder]


def test_places_that_only_a_shell_knows_are_told_to_the_daemon(tmp_path: Path) -> None:
    text = an_installation(tmp_path).texts(sandbox=False)[UNIT]
    assert f"[Service]\nEnvironment=XDG_CONFIG_HOME={tmp_path}/config\n" in text


def test_a_name_that_no_unit_can_hold_is_refused(tmp_path: Path) -> None:
    installation = an_installation(tmp_path)
    for wrong in (
        replace(installation, state_dir=tmp_path / "a\nb"),
        replace(installation, command=('/a"b/crewd',)),
    ):
        with pytest.raises(Refusal, match="cannot name"):
            wrong.texts(sandbox=False)


def test_the_trial_of_the_sandbox_names_no_place_of_ours() -> None:
    settings = sandbox_properties()
    assert {"PrivateUsers=yes", "ProtectSystem=strict"} <= {*settings}
    assert not any("crewd" in setting for setting in settings)


def test_the_command_of_this_installation_can_be_started() -> None:
    done = subprocess.run([*this_command(), "--version"], capture_output=True, check=True, cwd="/")
    assert done.stdout.startswith(b"crewd ")
