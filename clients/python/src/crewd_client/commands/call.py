"""`crew call`: any method of the daemon, with JSON in and out."""

from __future__ import annotations

import json
from typing import Any

import click
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.session import Session, read_text
from crewd_client.commands.terminal import put_json
from crewd_client.json import JsonError, did_you_mean, from_json, to_json
from crewd_client.v1 import (
    ask_service_pb2,
    catalog_service_pb2,
    daemon_service_pb2,
    run_service_pb2,
    worker_service_pb2,
)


@click.command()
@click.argument("method", metavar="SERVICE/METHOD")
@click.argument("request", default="{}", metavar="[JSON|-]")
@click.option("--json", is_flag=True, hidden=True, expose_value=False)
@click.pass_obj
def call(session: Session, /, method: str, request: str) -> int:
    """Call a method, e.g. RunService/GetRun '{"run_id": "run_..."}'.

    A stream is printed as one JSON object a line.
    """
    found = _method(method)
    # Any: the classes are made from the descriptors.
    kind: Any = GetMessageClass(found.input_type)
    answer: Any = GetMessageClass(found.output_type)
    message: Any = _message(read_text(request), kind)
    path = f"/{found.containing_service.full_name}/{found.name}"
    how = (path, kind.SerializeToString, answer.FromString)

    async def work(client: Client) -> int:
        if found.server_streaming:
            async for response in client.connection.unary_stream(*how)(message):
                put_json(to_json(response))
        else:
            put_json(to_json(await client.connection.unary_unary(*how)(message)))
        return Exit.DONE

    return session.perform(work)


def _message(text: str, kind: Any) -> object:  # noqa: ANN401  # as above
    try:
        return from_json(json.loads(text), kind)
    except JsonError as error:
        raise Refusal("\n".join(map(str, error.problems))) from None
    except ValueError as error:
        raise Refusal(f"the request is not JSON: {error}") from None


def _services() -> dict[str, ServiceDescriptor]:
    modules = (
        ask_service_pb2,
        catalog_service_pb2,
        daemon_service_pb2,
        run_service_pb2,
        worker_service_pb2,
    )
    # Any: the generated code does not tell what a file's descriptor holds.
    descriptors: list[Any] = [module.DESCRIPTOR for module in modules]
    return {
        name: service
        for descriptor in descriptors
        for name, service in descriptor.services_by_name.items()
    }


def _method(given: str) -> MethodDescriptor:
    services = _services()
    service_name, _, name = given.strip("/").rpartition("/")
    service = services.get(service_name.removeprefix("crewd.v1."))
    if service is None:
        hint = did_you_mean(service_name, services)
        raise Refusal(f"there is no service {service_name!r}{hint}", hint=", ".join(services))
    methods: dict[str, MethodDescriptor] = dict(service.methods_by_name)
    if name not in methods:
        hint = did_you_mean(name, methods)
        raise Refusal(f"{service_name} has no method {name!r}{hint}", hint=", ".join(methods))
    return methods[name]
