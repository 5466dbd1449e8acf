"""How a service is put together: its methods take a parsed request and give encoded bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message
from grpc.aio import ServicerContext

from crewd.core.model import Actor
from crewd.rpc.auth import Auth
from crewd.rpc.errors import invalid, too_large
from crewd.rpc.wire import KIB, size_of
from crewd.runtime.actor import RequestKey
from crewd.runtime.requests import check_same
from crewd.store import Reads

Context: TypeAlias = "ServicerContext[Any, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

REQUEST_ID_BYTES: Final = 64
NOTE_BYTES: Final = KIB
TEXT_BYTES: Final = 64 * KIB
"""The most bytes of an answer or a steer."""

Q = TypeVar("Q", bound=Message)
Q_contra = TypeVar("Q_contra", bound=Message, contravariant=True)


class Unary(Protocol[Q_contra]):
    async def __call__(self, request: Q_contra, context: Context, /) -> bytes: ...


class Stream(Protocol[Q_contra]):
    async def __call__(self, request: Q_contra, context: Context, /) -> None: ...


def unary(behaviour: Unary[Q], parse: Callable[[bytes], Q]) -> Handler:
    """Return the handler of a call with one response, which comes encoded."""
    return grpc.unary_unary_rpc_method_handler(behaviour, request_deserializer=parse)


def stream(behaviour: Stream[Q], parse: Callable[[bytes], Q]) -> Handler:
    """Return the handler of a call that writes encoded responses to its context."""
    return grpc.unary_stream_rpc_method_handler(behaviour, request_deserializer=parse)


def service(name: str, handlers: Mapping[str, Handler]) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(name, dict(handlers))


def actor_of(auth: Auth, context: Context) -> Actor:
    return auth.actor(context.invocation_metadata() or ())


def required(field: str, value: str) -> str:
    if not value:
        raise invalid(field, "required")
    return value


def bounded(field: str, text: str, limit: int) -> str:
    if size_of(text) > limit:
        raise too_large(field, limit)
    return text


def request_key(method: str, request: Message, request_id: str) -> RequestKey | None:
    """Return what makes the call safe to repeat, or None when its author does not want it."""
    if not request_id:
        return None
    bounded("request_id", request_id, REQUEST_ID_BYTES)
    body = type(request)()
    body.CopyFrom(request)
    body.ClearField("request_id")
    digest = sha256(body.SerializeToString(deterministic=True)).digest()
    return RequestKey(request_id, method, digest)


async def answered_before(reads: Reads, key: RequestKey | None) -> bytes | None:
    """Return what the same request was answered before. REQUEST_ID_REUSED for another one."""
    request = await reads.find_request(key.id) if key is not None else None
    if key is None or request is None:
        return None
    check_same(key, request)
    return request.response
