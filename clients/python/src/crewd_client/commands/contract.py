"""The services of the daemon with their methods, and what a method takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)

from crewd_client.commands.exits import Refusal
from crewd_client.json import did_you_mean, enum_name
from crewd_client.v1 import (
    ask_service_pb2,
    catalog_service_pb2,
    daemon_service_pb2,
    run_service_pb2,
    worker_service_pb2,
)

_MODULES = (
    run_service_pb2,
    ask_service_pb2,
    catalog_service_pb2,
    daemon_service_pb2,
    worker_service_pb2,
)
_PACKAGE = "crewd.v1."
_WELL_KNOWN = {
    "google.protobuf.Duration": 'duration, e.g. "1.5s"',
    "google.protobuf.Struct": "object",
    "google.protobuf.Timestamp": 'time, e.g. "2030-01-31T12:00:00Z"',
}
_SCALARS = {
    FieldDescriptor.TYPE_BOOL: "true|false",
    FieldDescriptor.TYPE_BYTES: "base64",
    FieldDescriptor.TYPE_DOUBLE: "number",
    FieldDescriptor.TYPE_FLOAT: "number",
    FieldDescriptor.TYPE_STRING: "string",
}


def methods(service: str = "") -> list[MethodDescriptor]:
    """List all methods, or those of one service, in the order of the contract."""
    services = _services()
    name = service.removeprefix(_PACKAGE)
    if name and name not in services:
        hint = did_you_mean(name, services)
        raise Refusal(f"there is no service {service!r}{hint}", hint=", ".join(services))
    chosen = [services[name]] if name else services.values()
    return [method for each in chosen for method in each.methods]


def find_method(given: str) -> MethodDescriptor:
    """Return the method that is named as `SERVICE/METHOD`, with or without the package."""
    service, _, name = given.strip("/").rpartition("/")
    found = {method.name: method for method in methods(service)}
    if name not in found:
        hint = did_you_mean(name, found)
        raise Refusal(f"{service} has no method {name!r}{hint}", hint=", ".join(found))
    return found[name]


def is_service(given: str) -> bool:
    """Tell whether a service alone is meant; what resembles one is refused with its name."""
    name = given.strip("/")
    if "/" in name:
        return False
    meant = [spell(method) for method in methods() if method.name == name]
    if meant:
        hint = f"crew call {meant[0]}"
        raise Refusal(f"{name!r} is a method without its service", hint=hint)
    return bool(methods(name))


def spell(method: MethodDescriptor) -> str:
    return f"{method.containing_service.name}/{method.name}"


def fields(message: Descriptor) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Give the message and those that are in it, each once, with the fields' names and types."""
    waiting, known = [message], {message.full_name}
    while waiting:
        each = waiting.pop(0)
        yield each.name, [(field.name, _type(field)) for field in each.fields]
        for inner in map(_message_in, each.fields):
            if inner is not None and inner.full_name not in known:
                known.add(inner.full_name)
                waiting.append(inner)


def _services() -> dict[str, ServiceDescriptor]:
    # Any: the generated code does not tell what a file's descriptor holds.
    descriptors: list[Any] = [module.DESCRIPTOR for module in _MODULES]
    return {
        name: service
        for descriptor in descriptors
        for name, service in descriptor.services_by_name.items()
    }


def _message_in(field: FieldDescriptor) -> Descriptor | None:
    """Return the message of ours that a field holds."""
    message = field.message_type
    if message is None or message.full_name in _WELL_KNOWN:
        return None
    if message.GetOptions().map_entry:
        return _message_in(message.fields_by_name["value"])
    return message


def _type(field: FieldDescriptor) -> str:
    """Say what a field takes, in JSON."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return f"object of {_type(message.fields_by_name['value'])}"
    single = _single_type(field)
    return f"list of {single}" if field.is_repeated else single


def _single_type(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return _WELL_KNOWN.get(field.message_type.full_name, field.message_type.name)
    if field.enum_type is not None:
        known = [value.number for value in field.enum_type.values if value.number]
        return "|".join(str(enum_name(field.enum_type, number)) for number in known)
    return _SCALARS.get(field.type, "integer")
