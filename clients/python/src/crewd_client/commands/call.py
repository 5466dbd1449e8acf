"""`crew call`: any method of the daemon, with JSON in and out."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import click
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from crewd_client.client import Client
from crewd_client.commands.contract import fields, find_method, is_service, methods, spell
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.session import Session, duration, read_text
from crewd_client.commands.terminal import note, put, put_json, put_table, span
from crewd_client.errors import CrewdError
from crewd_client.json import JsonError, from_json, to_json


@click.command()
@click.argument("method", default="", metavar="[SERVICE/METHOD]")
@click.argument("request", default="{}", metavar="[JSON|-]")
@click.option("--describe", is_flag=True, help="Print what the method takes; nothing is called.")
@click.option(
    "--timeout",
    metavar="T",
    callback=duration,
    help="Give up after this time. Default: 10s; a stream goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="List as JSON too; answers always are.")
@click.pass_obj
def call(  # noqa: PLR0913  # one for each thing that is typed
    session: Session,
    /,
    method: str,
    request: str,
    *,
    describe: bool,
    timeout: timedelta | None,
    as_json: bool,
) -> int:
    """Call a method, e.g. RunService/GetRun '{"run_id": "run_..."}'.

    A stream is printed as one JSON object a line; `-` reads the request from stdin. Without a
    method, or with a service alone, the methods are listed.
    """
    if not method or is_service(method):
        return _list(methods(method.strip("/")), as_json=as_json)
    found = find_method(method)
    if describe:
        return _describe(found, as_json=as_json)
    # Any: the classes are made from the descriptors.
    kind: Any = GetMessageClass(found.input_type)
    message: Any = _message(read_text(request), kind)

    async def work(client: Client) -> int:
        try:
            await _put_answers(client, found, message, timeout)
        except CrewdError as error:
            if timeout is None or error.code is not StatusCode.DEADLINE_EXCEEDED:
                raise
            note(f"{spell(found)} went on for {span(timeout.total_seconds())}")
            return Exit.TIMED_OUT
        return Exit.DONE

    return session.perform(work)


async def _put_answers(
    client: Client,
    method: MethodDescriptor,
    message: Any,  # noqa: ANN401  # as above
    timeout: timedelta | None,  # noqa: ASYNC109  # the deadline travels with the call
) -> None:
    kind: Any = GetMessageClass(method.input_type)
    answer: Any = GetMessageClass(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    how = (path, kind.SerializeToString, answer.FromString)
    seconds = None if timeout is None else timeout.total_seconds()
    if not method.server_streaming:
        put_json(to_json(await client.connection.unary_unary(*how)(message, timeout=seconds)))
        return
    async for response in client.connection.unary_stream(*how)(message, timeout=seconds):
        put_json(to_json(response))


def _message(text: str, kind: Any) -> object:  # noqa: ANN401  # as above
    try:
        return from_json(json.loads(text), kind)
    except JsonError as error:
        raise Refusal("\n".join(map(str, error.problems))) from None
    except ValueError as error:
        raise Refusal(f"the request is not JSON: {error}") from None


def _list(found: list[MethodDescriptor], *, as_json: bool) -> int:
    rows = [(spell(each), each.input_type.name, each.output_type.name) for each in found]
    streams = [bool(each.server_streaming) for each in found]
    if as_json:
        for (name, request, response), stream in zip(rows, streams, strict=True):
            put_json({"method": name, "request": request, "response": response, "stream": stream})
        return Exit.DONE
    marked = [
        (name, f"stream of {response}" if stream else response)
        for (name, _, response), stream in zip(rows, streams, strict=True)
    ]
    put_table(("METHOD", "ANSWER"), marked)
    return Exit.DONE


def _describe(method: MethodDescriptor, *, as_json: bool) -> int:
    for name, rows in fields(method.input_type):
        if as_json:
            put_json({"message": name, "fields": dict(rows)})
            continue
        put(name)
        width = max((len(field) for field, _ in rows), default=0)
        for field, kind in rows:
            put(f"  {field.ljust(width)}  {kind}")
    return Exit.DONE
