"""`crewd drain`: let the running work end, then the daemon."""

from __future__ import annotations

from datetime import timedelta

import click

from crewd.cli.leave import Leaving
from crewd.cli.options import find, no_daemon, span, state_dir_option
from crewd.contact import DrainMode, NotReachedError, drain, meant_state_dir


@click.command
@state_dir_option
@click.option(
    "--timeout", metavar="TIME", callback=span, help="The longest to wait: 90, 1.5s, 10m, 2h."
)
def command(state_dir: str | None, timeout: timedelta | None) -> None:
    """Start nothing new, wait until the running workers have ended, and end the daemon.

    Workers that still run after the timeout go on; the next daemon takes them over.
    """
    location = find(state_dir)
    try:
        leaving = Leaving(meant_state_dir(location))
        left = drain(location, DrainMode.DRAIN_MODE_WAIT, timeout=timeout)
    except NotReachedError:
        raise no_daemon(location) from None
    leaving.wait()
    click.echo(f"drained; {left} workers go on" if left else "drained")
