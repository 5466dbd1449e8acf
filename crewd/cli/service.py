"""`crewd service`: have systemd keep the daemon, as a service of the user who types it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from crewd.cli.options import state_dir_option
from crewd.instance import Holder, holder
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal
from crewd.systemd.units import (
    HOST_UNIT,
    UNIT,
    Installed,
    differing,
    find_installed,
    foreign,
    remove,
    sandbox_properties,
    this_installation,
    unit_folder,
    write,
)
from crewd.systemd.user_manager import UnreachableError, UserManager, lingers, user_name
from crewd_client import locate


@click.group
def command() -> None:
    """Start the daemon at login and keep it, by systemd and without root."""


@command.command
@state_dir_option
@click.option("--now", is_flag=True, help="Start it too.")
def install(state_dir: str | None, *, now: bool) -> None:
    """Install and enable the user units of this crewd; again after an upgrade."""
    paths = StatePaths(locate.state_dir(os.environ, state_dir))
    manager = _manager("crewd ensure starts the daemon without it")
    folder = unit_folder(os.environ)
    _refuse_foreign(folder)
    _refuse_other_state_dir(paths, find_installed(os.environ))
    if now:
        _refuse_other_daemon(paths, manager)
    installation = this_installation(paths.root, os.environ)
    paths.make()
    probe = (*installation.command, "--version")
    sandbox = manager.can_start_with(sandbox_properties(), probe)
    texts = installation.texts(sandbox=sandbox)
    write(folder, texts)
    for place in texts:
        click.echo(f"wrote {folder / place}")
    manager.tell("daemon-reload")
    manager.tell("enable", "--quiet", UNIT)
    click.echo(f"enabled {UNIT}: it starts with your first login; state directory {paths.root}")
    if not sandbox:
        click.echo("no sandbox: this system lets no user service have a file system of its own")
    _start(paths, manager) if now else _say_what_runs(paths, manager)
    click.echo(_linger_line())


@command.command
def uninstall() -> None:
    """Disable and remove the user units, and end the daemon they started. Workers go on."""
    manager = _manager("the units are in " + str(unit_folder(os.environ)))
    installed = find_installed(os.environ)
    if installed is None:
        click.echo(f"there is no {UNIT} in {unit_folder(os.environ)}")
        return
    _refuse_foreign(installed.folder)
    manager.tell("disable", "--quiet", UNIT)
    manager.tell("stop", UNIT)
    remove(installed.folder)
    manager.tell("daemon-reload")
    click.echo(f"removed {UNIT} and {HOST_UNIT} from {installed.folder}")
    if manager.properties(HOST_UNIT, "ActiveState")["ActiveState"] == "active":
        click.echo(
            f"the host goes on until its workers have ended: systemctl --user stop {HOST_UNIT}"
        )


@command.command
@click.pass_context
def status(ctx: click.Context) -> None:
    """Tell how the units are. Exits with 0: active, 3: not active, 4: starting or ending."""
    installed = find_installed(os.environ)
    if installed is None:
        click.echo("not installed: crewd service install")
        ctx.exit(Exit.NOT_RUNNING)
    click.echo("\n".join(_described(installed)))
    manager = _manager("is XDG_RUNTIME_DIR set, and do you have a session?")
    states = [_state(manager, unit) for unit in (UNIT, HOST_UNIT)]
    click.echo("\n".join(line for line, _ in states))
    active = states[0][1]
    passing = {"activating", "deactivating", "reloading"}
    code = Exit.DONE if active == "active" else Exit.NOT_RUNNING
    ctx.exit(Exit.NOT_READY if active in passing else code)


def _manager(otherwise: str) -> UserManager:
    try:
        return UserManager(os.environ)
    except UnreachableError as problem:
        raise Refusal(
            f"your service manager cannot be reached: {problem}",
            hint=f"log in as this user, not by su or sudo; {otherwise}",
            exit_code=Exit.FAILED,
        ) from problem


def _refuse_foreign(folder: Path) -> None:
    found = foreign(folder)
    if found:
        raise Refusal(
            f"not written by `crewd service install`, so all is left alone: "
            f"{', '.join(map(str, found))}",
            hint=f"look at it, and move it away: mv {found[0]} {found[0]}.old",
        )


def _refuse_other_state_dir(paths: StatePaths, installed: Installed | None) -> None:
    """One unit keeps one daemon: what runs by it is not taken away from under its workers."""
    if installed is not None and installed.state_dir not in {None, paths.root}:
        raise Refusal(
            f"{UNIT} keeps the daemon of {installed.state_dir}, so it cannot keep that of "
            f"{paths.root}",
            hint="to have it keep the other one, first: crewd service uninstall",
        )


def _refuse_other_daemon(paths: StatePaths, manager: UserManager) -> None:
    found = holder(paths.lock)
    if found is not None and not _is_of_unit(found, manager):
        raise Refusal(
            f"a daemon runs already for {paths.root} that the unit did not start: {found}",
            hint=f"end it first, its workers go on: crewd stop --state-dir {paths.root}",
        )


def _start(paths: StatePaths, manager: UserManager) -> None:
    running = holder(paths.lock)
    manager.starting(UNIT).wait()
    told = manager.properties(UNIT, "ActiveState", "MainPID", "Result")
    if told["ActiveState"] != "active":
        lines = manager.last_lines(UNIT)
        message = f"{UNIT} does not start ({told['Result']})"
        raise Refusal(
            f"{message}\n{lines}" if lines else message,
            hint=f"systemctl --user status {UNIT}",
            exit_code=Exit.FAILED,
        )
    found = holder(paths.lock)
    if found is None or str(found.pid) != told["MainPID"]:
        raise Refusal(
            f"{UNIT} has started pid {told['MainPID']}, but the daemon of {paths.root} is "
            f"{found or 'not there'}",
            hint=f"do you have settings of your own? systemctl --user cat {UNIT}",
            exit_code=Exit.FAILED,
        )
    click.echo(f"started, pid {told['MainPID']}")
    if running is not None:
        click.echo(
            f"it ran already; what was written counts after: systemctl --user restart {UNIT}"
        )


def _say_what_runs(paths: StatePaths, manager: UserManager) -> None:
    found = holder(paths.lock)
    if found is None:
        click.echo(f"start it now: systemctl --user start {UNIT}")
    elif _is_of_unit(found, manager):
        click.echo(f"what was written counts after: systemctl --user restart {UNIT}")
    else:
        click.echo(f"a daemon runs already ({found}); the unit can take over after `crewd stop`")


def _is_of_unit(daemon: Holder, manager: UserManager) -> bool:
    return str(daemon.pid) == manager.properties(UNIT, "MainPID")["MainPID"]


def _described(installed: Installed) -> Iterator[str]:
    yield f"unit: {installed.folder / UNIT} ({'enabled' if installed.enabled else 'disabled'})"
    yield f"state directory: {installed.state_dir or 'unknown'}"
    yield f"sandbox: {'yes' if installed.sandbox else 'no'}"
    if installed.state_dir is not None:
        stale = differing(installed, this_installation(installed.state_dir, os.environ))
        if stale:
            yield f"not as this crewd would write it: {', '.join(stale)}: crewd service install"
    yield _linger_line()


def _state(manager: UserManager, unit: str) -> tuple[str, str]:
    names = ("ActiveState", "SubState", "MainPID", "StatusText", "NRestarts")
    told = manager.properties(unit, *names)
    line = f"{unit}: {told['ActiveState']} ({told['SubState']})"
    if told["MainPID"] not in {"", "0"}:
        line += f", pid {told['MainPID']}"
    if told["NRestarts"] not in {"", "0"}:
        line += f", restarted {told['NRestarts']} times"
    if told["StatusText"]:
        line += f": {told['StatusText']}"
    return line, told["ActiveState"]


def _linger_line() -> str:
    user = user_name(os.environ)
    if user and lingers(Path("/"), user):
        return "it goes on when you log out, and starts at boot (linger is on)"
    return "it ends, with its workers, at your last logout, unless: loginctl enable-linger"
