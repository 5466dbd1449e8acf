"""Methods of a plain object as gRPC services, found by the names in the contract."""
# ruff: noqa: ANN401  # every method has types of its own

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import groupby
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
)

from crewd_client.commands.contract import methods
from tests.support.refusals import abort

Check = Callable[[str, Any, dict[str, str]], Awaitable[None]]


class RefusedError(Exception):
    """What a call is answered with instead."""

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: str = "",
        message: str = "",
        details: Iterable[Message] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        info = [ErrorInfo(reason=reason, domain="crewd")] if reason else []
        self.details = [*info, *details]


def bad_request(field: str, description: str) -> Message:
    violation = BadRequest.FieldViolation(field=field, description=description)
    made: Message = BadRequest(field_violations=[violation])
    return made


def server_of(servicer: object, check: Check) -> grpc.aio.Server:
    """Serve every method of the contract that the object has; `check` is called before each."""
    server = grpc.aio.server()
    served = [method for method in methods() if hasattr(servicer, method.name)]
    for service, those in groupby(served, lambda method: method.containing_service.full_name):
        handlers: dict[str, Any] = {
            method.name: _handler(method, getattr(servicer, method.name), check) for method in those
        }
        made = grpc.method_handlers_generic_handler(service, handlers)
        server.add_generic_rpc_handlers((made,))
    return server


def _handler(method: Any, function: Callable[[Any], Any], check: Check) -> Any:
    async def unary(request: Any, context: Any) -> Any:
        try:
            await check(method.name, request, _metadata(context))
            return function(request)
        except RefusedError as refused:
            await abort(context, refused.code, refused.message, refused.details)

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            await check(method.name, request, _metadata(context))
            async for response in function(request):
                yield response
        except RefusedError as refused:
            await abort(context, refused.code, refused.message, refused.details)

    kind: Any = GetMessageClass(method.input_type)
    if method.server_streaming:
        make: Any = grpc.unary_stream_rpc_method_handler
        return make(stream, kind.FromString, _serialize)
    make = grpc.unary_unary_rpc_method_handler
    return make(unary, kind.FromString, _serialize)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _metadata(context: Any) -> dict[str, str]:
    return {key: str(value) for key, value in context.invocation_metadata()}
