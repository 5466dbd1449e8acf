"""`crewd status`: is there a daemon, and how is it."""

from __future__ import annotations

import time

import click

from crewd.cli.options import echo_json, find, json_option, state_dir_option
from crewd.contact import (
    ANSWER_TIMEOUT,
    HostStatus,
    NotReachedError,
    ServerInfo,
    ServerStatus,
    server_info,
)
from crewd.ensure import kept_waiting, way_out
from crewd.instance import holder
from crewd.paths import StatePaths
from crewd.refusal import Exit
from crewd_client.json import enum_name, to_json
from crewd_client.locate import Location


@click.command
@state_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, state_dir: str | None, *, as_json: bool) -> None:
    """Tell how the daemon is. Exits with 0: serving, 3: not running, 4: recovering or draining."""
    location = find(state_dir)
    asked = time.monotonic()
    try:
        info = server_info(location, ANSWER_TIMEOUT)
    except NotReachedError:
        hangs = kept_waiting(asked, ANSWER_TIMEOUT)
        ctx.exit(_silent(location, hangs=hangs, as_json=as_json))
    if as_json:
        echo_json({"pid": _pid(info, location), **to_json(info)})
    else:
        click.echo("\n".join(_lines(info, location)))
    serving = info.status == ServerStatus.SERVER_STATUS_SERVING
    ctx.exit(Exit.DONE if serving else Exit.NOT_READY)


def _silent(location: Location, *, hangs: bool, as_json: bool) -> Exit:
    """Tell about a daemon that does not answer: dead, hanging, or just starting or ending."""
    found = holder(StatePaths(location.state_dir).lock)
    status = "not_running" if found is None else "not_answering"
    if as_json:
        pid = found.pid if found is not None else 0
        place = {"state_dir": str(location.state_dir), "socket": str(location.socket)}
        echo_json({"status": status, "pid": pid, **place})
    elif found is None:
        click.echo(f"not running: no daemon for {location.state_dir}\nstart it: crewd ensure")
    elif hangs and found.pid:
        click.echo(f"not answering: pid {found.pid} does not answer\n{way_out(found.pid)}")
    else:
        click.echo(f"not answering: starting or ending, {found}")
    return Exit.NOT_RUNNING if found is None else Exit.NOT_READY


def _lines(info: ServerInfo, location: Location) -> list[str]:
    status = enum_name(ServerStatus.DESCRIPTOR, info.status)
    lines = [
        f"{status}: crewd {info.version}, pid {_pid(info, location) or 'unknown'}",
        f"socket: {info.socket}",
        f"state directory: {info.state_dir}",
        f"runs: {info.open_runs} open, asks: {info.open_asks} open",
        _host_line(info),
    ]
    if info.status_message:
        lines.append(f"no new run is taken: {info.status_message}")
    if info.restart_needed:
        lines.append("restart needed, crewd was upgraded: crewd stop && crewd ensure")
    return lines


def _host_line(info: ServerInfo) -> str:
    host = info.host
    if host.status == HostStatus.HOST_STATUS_UNREACHABLE:
        return (
            "host: UNREACHABLE: no worker can be started; reads, answers and cancels are served; "
            f"{host.message or info.state_dir + '/host/host.log'}"
        )
    if host.status != HostStatus.HOST_STATUS_READY:
        return "host: being started or connected to"
    newer = ", restart needed" if host.restart_needed else ""
    return f"host: crewd {host.version}, pid {host.pid}, {host.running_workers} workers{newer}"


def _pid(info: ServerInfo, location: Location) -> int:
    daemon = location.daemon
    return daemon.pid if daemon is not None and daemon.instance_id == info.instance_id else 0
