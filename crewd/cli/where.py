"""`crewd where`: where things are and why there."""

from __future__ import annotations

from dataclasses import asdict

import click

from crewd.cli.options import echo_json, find, json_option, state_dir_option
from crewd_client.locate import Location, explain


@click.command
@click.argument("what", type=click.Choice(["state-dir", "socket"]), required=False)
@state_dir_option
@json_option
def command(what: str | None, state_dir: str | None, *, as_json: bool) -> None:
    """Tell where state directory, socket and token are, and which rule chose each.

    With the name of one, print its path alone.
    """
    location = find(state_dir)
    if what is not None:
        click.echo(location.socket if what == "socket" else location.state_dir)
    elif as_json:
        echo_json(_described(location))
    else:
        click.echo("\n".join(explain(location)))


def _described(location: Location) -> dict[str, object]:
    return {
        "state_dir": {"path": str(location.state_dir), "rule": location.state_dir_source},
        "socket": {"path": str(location.socket), "rule": location.socket_source},
        "token": {"found": location.token is not None, "rule": location.token_source},
        "daemon": asdict(location.daemon) if location.daemon is not None else None,
        "notes": list(location.notes),
    }
