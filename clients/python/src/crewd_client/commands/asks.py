"""`crew asks` and `crew answer`: the questions that wait for a person."""

from __future__ import annotations

import click

from crewd_client.client import Client
from crewd_client.commands.answers import read_answer
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.lines import question
from crewd_client.commands.listing import Listing
from crewd_client.commands.pick import PAGE, pick_ask, pick_run
from crewd_client.commands.session import Session, json_option, read_text
from crewd_client.commands.terminal import (
    put,
    put_json,
    seconds_between,
    shorten,
    span,
    word,
)
from crewd_client.json import to_json
from crewd_client.pages import list_asks
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN, Ask
from crewd_client.v1.ask_service_pb2 import AnswerAskRequest, AskFilter, GetAskRequest
from crewd_client.watch import watch_asks


@click.command()
@click.argument("run", required=False)
@click.option("-a", "--all", "everything", is_flag=True, help="Settled ones too.")
@click.option("--watch", is_flag=True, help="Print each ask again whenever it changes.")
@json_option
@click.pass_obj
def asks(
    session: Session, /, run: str | None, *, everything: bool, watch: bool, as_json: bool
) -> int:
    """List the questions that wait for an answer, of RUN or of all runs."""

    async def work(client: Client) -> int:
        wanted = AskFilter(
            run_id="" if run is None else await pick_run(client, run),
            statuses=[] if everything else [ASK_STATUS_OPEN],
        )
        if watch:
            return await _LISTING.follow(watch_asks(client, wanted), as_json=as_json)
        found = [ask async for ask in list_asks(client, wanted, page_size=PAGE)]
        _LISTING.put(found, as_json=as_json)
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("ask")
@click.argument("text", required=False)
@click.option("--option", "options", multiple=True, metavar="ID", help="Choose this option.")
@click.option("--decline", is_flag=True, help="Say that there will be no answer.")
@click.option("--note", "why", default="", metavar="WHY", help="Why, for the log.")
@json_option
@click.pass_obj
def answer(
    session: Session, /, ask: str, text: str | None, *, as_json: bool, **typed: object
) -> int:
    """Answer ASK with TEXT (- reads stdin), with options, or decline it."""
    request = AnswerAskRequest(
        text="" if text is None else read_text(text),
        option_ids=typed["options"],  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        decline=bool(typed["decline"]),
        note=str(typed["why"]),
    )
    given = bool(request.text or request.option_ids)
    if given == request.decline:
        what = "an answer and --decline exclude each other" if given else "no answer is given"
        raise Refusal(what, hint="crew answer --help")

    async def work(client: Client) -> int:
        request.ask_id = await pick_ask(client, ask)
        if request.text and not request.option_ids:
            found = await client.asks.GetAsk(GetAskRequest(ask_id=request.ask_id))
            read = read_answer(found.ask, request.text)
            request.text = read.text
            request.option_ids.extend(read.option_ids)
        settled = (await client.asks.AnswerAsk(request)).ask
        if as_json:
            put_json({"ask": to_json(settled)})
        else:
            put(f"{settled.id} {word(settled, 'status')}")
        return Exit.DONE

    return session.perform(work)


def _cells(ask: Ask) -> list[str]:
    age = span(seconds_between(ask.create_time))
    asked = shorten(question(ask), 160)
    return [ask.id, word(ask, "status"), ask.run_id, ask.task_id, age, asked]


_LISTING = Listing(
    ("ASK", "STATUS", "RUN", "TASK", "AGE", "QUESTION"),
    _cells,
    nothing="no asks",
    gone="does not wait any more",
)
