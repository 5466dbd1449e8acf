"""`crew watch` and `crew wait`."""

from __future__ import annotations

from datetime import timedelta

import click

from crewd_client.client import Client
from crewd_client.commands.follow import Manner, follow
from crewd_client.commands.pick import pick_run
from crewd_client.commands.session import SEQUENCE, Session, duration, json_option


@click.command()
@click.argument("run", required=False)
@click.option("--after", type=SEQUENCE, default=0, metavar="SEQ", help="Begin after this event.")
@json_option
@click.pass_obj
def watch(session: Session, /, run: str | None, after: int, *, as_json: bool) -> int:
    """Follow a run to its end; without RUN the newest of this directory."""
    manner = Manner(after=after, as_json=as_json, prompt=not as_json)

    async def work(client: Client) -> int:
        return await follow(client, await pick_run(client, run), manner)

    return session.perform(work)


@click.command()
@click.argument("run", required=False)
@click.option("--timeout", callback=duration, metavar="T", help="Wait no longer than this.")
@json_option
@click.pass_obj
def wait(session: Session, /, run: str | None, timeout: timedelta | None, *, as_json: bool) -> int:
    """Wait until a run is over or blocked; without RUN the newest of this directory."""
    manner = Manner(silent=True, as_json=as_json, prompt=False, wait_timeout=timeout)

    async def work(client: Client) -> int:
        return await follow(client, await pick_run(client, run), manner)

    return session.perform(work)
