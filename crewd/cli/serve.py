"""`crewd serve`: be the daemon."""

from __future__ import annotations

import os
import sys

import click

from crewd import log
from crewd.cli.options import state_dir_option
from crewd.config import HostMode, Options, read_config


@click.command
@state_dir_option
@click.option("--socket", metavar="PATH", help="Where to listen. Default: CREWD_SOCKET.")
@click.option(
    "--host",
    type=click.Choice([str(mode) for mode in HostMode]),
    help="auto: start the host if it does not answer; connect: a service manager owns it.",
)
@click.option(
    "--max-workers", type=int, metavar="N", help="Workers at the same time, over all runs."
)
@click.pass_context
def command(
    ctx: click.Context,
    state_dir: str | None,
    socket: str | None,
    host: str | None,
    max_workers: int | None,
) -> None:
    """Run the daemon in the foreground until it is told to stop."""
    options = Options(state_dir=state_dir, socket=socket, host=host, max_workers=max_workers)
    config = read_config(os.environ, options)
    log.set_up(config.log_level, config.log_format, sys.stderr)
    from crewd.daemon import run  # noqa: PLC0415 - a wrong option is told before all this is loaded

    ctx.exit(run(config))
