"""`crew events`: the log of a run."""

from __future__ import annotations

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit
from crewd_client.commands.lines import summary
from crewd_client.commands.pick import PAGE, pick_run
from crewd_client.commands.session import SEQUENCE, Session, json_option
from crewd_client.commands.terminal import clean, clock, put, put_json
from crewd_client.json import to_json
from crewd_client.pages import list_events


@click.command()
@click.argument("run", required=False)
@click.option(
    "--after", type=SEQUENCE, default=0, metavar="SEQ", help="Only events after this one."
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only events of this kind.")
@json_option
@click.pass_obj
def events(
    session: Session, /, run: str | None, after: int, kinds: tuple[str, ...], *, as_json: bool
) -> int:
    """Print what is recorded of a run, oldest first. To follow it: `crew watch`."""

    async def work(client: Client) -> int:
        run_id = await pick_run(client, run)
        found = list_events(client, run_id, after_sequence=after, kinds=kinds, page_size=PAGE)
        async for event in found:
            if as_json:
                put_json(to_json(event))
            else:
                about = f"{clock(event.time)} {event.kind:<22} {event.task_id or '-':<12}"
                put(f"{event.sequence:>8} {about} {clean(summary(event))}".rstrip())
        return Exit.DONE

    return session.perform(work)
