"""`crewd stop`: end the daemon, and its workers too if asked."""

from __future__ import annotations

from pathlib import Path

import click

from crewd.cli.host import stop_host
from crewd.cli.leave import Leaving
from crewd.cli.options import find, state_dir_option
from crewd.contact import ANSWER_TIMEOUT, DrainMode, NotReachedError, drain, meant_state_dir
from crewd.refusal import Exit
from crewd_client.locate import Location


@click.command
@state_dir_option
@click.option("--all", "workers_too", is_flag=True, help="Stop the workers and their host too.")
@click.pass_context
def command(ctx: click.Context, state_dir: str | None, *, workers_too: bool) -> None:
    """End the daemon and return when it is gone. Workers go on; the next daemon takes them over."""
    location = find(state_dir)
    root = _stop_daemon(location)
    if workers_too:
        ctx.exit(_stop_workers(root))


def _stop_daemon(location: Location) -> Path:
    try:
        root = meant_state_dir(location)
        answers = True
    except NotReachedError:
        root = location.state_dir
        answers = False
    leaving = Leaving(root)
    if not leaving.is_there:
        click.echo(f"no daemon runs for {root}")
        return root
    if not answers or not _told(location):
        leaving.terminate()
    leaving.wait()
    click.echo("stopped")
    return root


def _told(location: Location) -> bool:
    try:
        drain(location, DrainMode.DRAIN_MODE_LEAVE_RUNNING, patience=ANSWER_TIMEOUT)
    except NotReachedError:
        return False
    return True


def _stop_workers(root: Path) -> Exit:
    ended = stop_host(root)
    if ended is None:
        click.echo("no host runs")
        return Exit.DONE
    click.echo(f"host and {ended.jobs} workers stopped")
    for survivor in ended.survivors:
        click.echo(f"still there: {survivor}", err=True)
    return Exit.FAILED if ended.survivors else Exit.DONE
