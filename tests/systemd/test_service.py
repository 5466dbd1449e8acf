"""`crewd service` and `crewd ensure` where no service manager can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crewd.systemd.units import UNIT, Installation, this_command, unit_folder, write
from tests.daemon.command import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose user's PATH has no systemd: whoever runs the tests may have a real one."""
    home = Home(tmp_path)
    home.env["PATH"] = str(tmp_path)
    yield home
    home.clean_up()


def install(home: Home, state_dir: Path | None = None) -> Path:
    """Have an enabled unit; return its folder."""
    installation = Installation(
        command=this_command(), state_dir=state_dir or home.state_dir, env=home.env
    )
    folder = unit_folder(home.env)
    write(folder, installation.texts(sandbox=False))
    wanted = folder / "default.target.wants"
    wanted.mkdir()
    (wanted / UNIT).symlink_to(folder / UNIT)
    return folder


def test_nothing_is_installed_where_no_manager_can_be_reached(home: Home) -> None:
    done = home.crewd("service", "install", "--now")
    assert done.returncode == 1
    assert "your service manager cannot be reached: systemctl is not on PATH" in done.stderr
    assert "crewd ensure starts the daemon without it" in done.stderr
    assert not unit_folder(home.env).exists()
    assert not home.state_dir.exists()


def test_ensure_starts_the_daemon_itself_and_says_so(home: Home) -> None:
    install(home)
    done = home.crewd("ensure", "--json")
    assert done.returncode == 0
    assert done.stderr.startswith(f"note: the daemon is started without its unit {UNIT}: ")
    again = home.crewd("ensure", "--json")
    assert (again.stdout, again.stderr) == (done.stdout, "")


def test_a_daemon_does_not_speak_for_the_service_that_had_it_started(home: Home) -> None:
    given = {"NOTIFY_SOCKET": str(home.root / "n"), "WATCHDOG_USEC": "9000000", "WATCHDOG_PID": "1"}
    assert home.crewd("ensure", **given).returncode == 0
    environment = Path(f"/proc/{home.pid()}/environ").read_text().split("\0")
    names = {each.partition("=")[0] for each in environment}
    assert "HOME" in names
    assert not names & given.keys()


@pytest.mark.parametrize("case", ["another state directory", "not enabled", "a socket is named"])
def test_ensure_lets_a_unit_alone_that_is_not_meant(home: Home, case: str) -> None:
    folder = install(home, home.another("other") if case.startswith("another") else None)
    if case == "not enabled":
        (folder / "default.target.wants" / UNIT).unlink()
    if case == "a socket is named":
        home.env["CREWD_SOCKET"] = str(home.root / "own.sock")
    done = home.crewd("ensure", "--json")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_status_of_units_is_told_as_far_as_it_is_known(home: Home) -> None:
    assert home.crewd("service", "status").stdout == "not installed: crewd service install\n"
    folder = install(home)
    done = home.crewd("service", "status")
    assert done.stdout.splitlines()[:2] == [
        f"unit: {folder / UNIT} (enabled)",
        f"state directory: {home.state_dir}",
    ]
    assert done.returncode == 1
