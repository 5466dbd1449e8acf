"""`crewd token`: print the token."""

from __future__ import annotations

import click

from crewd.cli.options import find, state_dir_option
from crewd.refusal import Exit, Refusal


@click.command
@state_dir_option
def command(state_dir: str | None) -> None:
    """Print the token that calls must carry, as `authorization: Bearer TOKEN`."""
    location = find(state_dir)
    if location.token is None:
        raise Refusal(
            f"there is no token: {location.token_source}",
            hint="the first start of the daemon makes it: crewd ensure",
            exit_code=Exit.NO_DAEMON,
        )
    click.echo(location.token)
