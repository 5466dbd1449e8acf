"""`crew steer`: a word to a worker, and what becomes of it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit
from crewd_client.commands.pick import pick_run
from crewd_client.commands.session import Session, duration, json_option, read_text
from crewd_client.commands.terminal import note, put, put_json, span, word
from crewd_client.json import to_json
from crewd_client.v1.run_service_pb2 import GetRunRequest
from crewd_client.v1.run_task_pb2 import SteerTaskRequest
from crewd_client.v1.task_pb2 import (
    STEER_STATUS_EXPIRED,
    STEER_STATUS_QUEUED,
    STEER_STATUS_UNDELIVERABLE,
    Steer,
)
from crewd_client.watch import watch_run

_LOST = {STEER_STATUS_EXPIRED, STEER_STATUS_UNDELIVERABLE}


@click.command()
@click.argument("run")
@click.argument("task")
@click.argument("text")
@click.option("--no-wait", is_flag=True, help="Do not wait until the worker has it.")
@click.option(
    "--wait-timeout",
    callback=duration,
    default="10s",
    metavar="T",
    help="Wait no longer than this; default: 10s.",
)
@json_option
@click.pass_obj
def steer(  # noqa: PLR0913  # one for each thing that is typed
    session: Session,
    /,
    run: str,
    task: str,
    text: str,
    *,
    no_wait: bool,
    wait_timeout: timedelta,
    as_json: bool,
) -> int:
    """Send a word to a running worker, and tell whether it got there; - reads stdin.

    Exits with 3 if the worker did not get it. One that takes its time may still get it: that is 0.
    """
    words = read_text(text)

    async def work(client: Client) -> int:
        run_id = await pick_run(client, run)
        # Asked for before it is sent: what happens to it is recorded after this.
        asked = GetRunRequest(run_id=run_id)
        before = 0 if no_wait else (await client.runs.GetRun(asked)).run.last_sequence
        request = SteerTaskRequest(run_id=run_id, task_id=task, text=words)
        sent = (await client.runs.SteerTask(request)).steer
        _put(sent, as_json=as_json)
        if sent.status == STEER_STATUS_QUEUED and not no_wait:
            sent = await _settled(client, run_id, before, sent, wait_timeout)
            if sent.status == STEER_STATUS_QUEUED:
                note(f"the worker has not taken it after {span(wait_timeout.total_seconds())}")
            else:
                _put(sent, as_json=as_json)
        return Exit.BLOCKED if sent.status in _LOST else Exit.DONE

    return session.perform(work)


async def _settled(
    client: Client, run_id: str, after: int, sent: Steer, longest: timedelta
) -> Steer:
    """Wait for what becomes of it; give it as it was if that is not known in time."""
    try:
        async with (
            asyncio.timeout(longest.total_seconds()),
            aclosing(watch_run(client, run_id, after, kinds=["steer_updated"])) as events,
        ):
            async for event in events:
                news = event.steer_updated
                if news.steer_id == sent.id and news.status != STEER_STATUS_QUEUED:
                    return Steer(id=sent.id, status=news.status)
    except TimeoutError:
        # It stays queued, and the worker may take it later.
        return sent
    return sent


def _put(sent: Steer, *, as_json: bool) -> None:
    if as_json:
        put_json({"steer": to_json(sent)})
    else:
        put(f"{sent.id} {word(sent, 'status')}")
