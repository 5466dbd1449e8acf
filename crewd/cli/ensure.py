"""`crewd ensure`: have a daemon."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from crewd.cli.options import echo_json, json_option, state_dir_option
from crewd.ensure import ensure


@click.command
@state_dir_option
@json_option
def command(state_dir: str | None, *, as_json: bool) -> None:
    """Start the daemon in the background unless it runs, and wait until it serves."""
    daemon = ensure(os.environ, state_dir, note=_note)
    if as_json:
        echo_json(asdict(daemon))
    else:
        click.echo(f"crewd {daemon.version} serves, pid {daemon.pid}, socket {daemon.socket}")


def _note(text: str) -> None:
    click.echo(f"note: {text}", err=True)
