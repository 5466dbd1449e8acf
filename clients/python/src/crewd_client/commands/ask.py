"""`crew ask`: a worker's question to a person, answered on stdout."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import timedelta

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.session import Session, duration, json_option, read_text
from crewd_client.commands.terminal import note, put, put_json, word
from crewd_client.json import to_json
from crewd_client.v1.ask_pb2 import (
    ASK_STATUS_ANSWERED,
    ASK_STATUS_TIMED_OUT,
    ON_TIMEOUT_CONTINUE,
    OnTimeout,
)
from crewd_client.v1.worker_service_pb2 import CreateAskOption, CreateAskRequest
from crewd_client.worker import TASK_TOKEN, Answer, Worker

_WAYS = {
    "wait": OnTimeout.ON_TIMEOUT_WAIT,
    "fail": OnTimeout.ON_TIMEOUT_FAIL_TASK,
    "decline": OnTimeout.ON_TIMEOUT_DECLINE,
    "default": OnTimeout.ON_TIMEOUT_DEFAULT_OPTION,
    "continue": OnTimeout.ON_TIMEOUT_CONTINUE,
}


@click.command()
@click.argument("question")
@click.option("--option", "options", multiple=True, metavar="ID[=LABEL]", help="One to choose.")
@click.option("--detail", default="", metavar="T", help="What helps to answer it; - reads stdin.")
@click.option("--timeout", callback=duration, metavar="T", help="How long an answer may take.")
@click.option("--on-timeout", type=click.Choice(list(_WAYS)), help="What happens then.")
@click.option("--default", default="", metavar="ID", help="The option for --on-timeout default.")
@click.option("--multiple", is_flag=True, help="Several options may be chosen.")
@click.option("--text", is_flag=True, help="With --option: other words are an answer as well.")
@json_option
@click.pass_obj
def ask(session: Session, /, question: str, *, as_json: bool, **typed: object) -> int:
    """Ask a person QUESTION and print the answer; only inside a worker.

    Without --option any text is an answer; with it only one of the options is, unless --text is
    given. Waits until there is an answer, also while the daemon is away. Printed is the text, or
    the id of the option chosen, each on its line. Exits with 3 if there will be no answer, with
    124 if its time is up. With --timeout alone the worker goes on without an answer then.
    """
    if not os.environ.get(TASK_TOKEN):
        hint = f"crewd gives its workers {TASK_TOKEN}; to answer questions: crew answer"
        raise Refusal("`crew ask` works inside a worker only, and this is none", hint=hint)
    request = _request(read_text(question), **typed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    async def work(client: Client) -> int:
        return _tell(await Worker(client).ask_as(request), as_json=as_json)

    return session.perform(work)


def _request(  # noqa: PLR0913  # one for each option of the command
    question: str,
    *,
    options: Collection[str],
    detail: str,
    timeout: timedelta | None,
    on_timeout: str | None,
    default: str,
    multiple: bool,
    text: bool,
) -> CreateAskRequest:
    request = CreateAskRequest(
        question=question,
        detail=read_text(detail),
        options=map(_option, options),
        allow_text=text or not options,
        multiple=multiple,
        default_option_id=default,
    )
    if timeout is not None:
        request.timeout.FromTimedelta(timeout)
        request.on_timeout = ON_TIMEOUT_CONTINUE
    if on_timeout is not None:
        request.on_timeout = _WAYS[on_timeout]
    return request


def _option(typed: str) -> CreateAskOption:
    option_id, _, label = typed.partition("=")
    return CreateAskOption(id=option_id, label=label)


def _tell(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        told = {"text": answer.text, "option_ids": list(answer.choices)}
        put_json({"answer": told, "ask": to_json(answer.ask)})
    elif answer.answered:
        put("\n".join([*answer.choices, *filter(None, [answer.text])]))
    else:
        note(f"no answer: {word(answer.ask, 'status')}")
    if answer.ask.status == ASK_STATUS_ANSWERED:
        return Exit.DONE
    return Exit.TIMED_OUT if answer.ask.status == ASK_STATUS_TIMED_OUT else Exit.BLOCKED
