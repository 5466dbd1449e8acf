"""The unit files themselves, judged by systemd's own tools."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from crewd.refusal import Refusal
from crewd.units import (
    HOST_UNIT,
    SANDBOX,
    UNIT,
    Installation,
    differing,
    find_installed,
    remove,
    sandbox_properties,
    this_command,
    unit_folder,
    write,
)

SHIPPED: Final = Path(__file__).parents[2] / "systemd"
MOST_EXPOSED: Final = {False: 60, True: 15}
"""In tenths. Judged as a service of the system: capabilities count that no user's has."""
ODD_NAMES: Final = ("plain", "with space", "100%h", "$HOME", 'a"b', "back\\slash", "ünï", "a;b'c")

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


def test_units_that_were_written_are_found_and_as_they_should_be(tmp_path: Path) -> None:
    installation = an_installation(tmp_path)
    assert find_installed(installation.env) is None
    folder = unit_folder(installation.env)
    write(folder, installation.texts(sandbox=True))
    found = find_installed(installation.env)
    assert found is not None
    assert (found.is_ours, found.sandbox, found.enabled) == (True, True, False)
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
    assert not found.is_ours
    assert found.state_dir == tmp_path / ".local/state/crewd"
    (folder / UNIT).write_text("[Service]\nExecStart=/bin/crewd serve\n")
    found = find_installed(env)
    assert found is not None
    assert found.state_dir is None


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
