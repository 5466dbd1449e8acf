"""Methods of a plain object as gRPC services, found by the names in the contract."""
# ruff: noqa: ANN401  # every method has types of its own

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
)
from google.rpc.status_pb2 import Status

from crewd_client.v1 import (
    ask_service_pb2,
    catalog_service_pb2,
    daemon_service_pb2,
    run_service_pb2,
    worker_service_pb2,
)

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
        self.status = Status(code=code.value[0], message=message)
        info = [ErrorInfo(reason=reason, domain="crewd")] if reason else []
        for each in [*info, *details]:
            packed = AnyMessage()
            packed.Pack(each)
            self.status.details.append(packed)


def bad_request(field: str, description: str) -> Message:
    violation = BadRequest.FieldViolation(field=field, description=description)
    made: Message = BadRequest(field_violations=[violation])
    return made


def server_of(servicer: object, check: Check) -> grpc.aio.Server:
    """Serve every method of the contract that the object has; `check` is called before each."""
    server = grpc.aio.server()
    modules = (
        ask_service_pb2,
        catalog_service_pb2,
        daemon_service_pb2,
        run_service_pb2,
        worker_service_pb2,
    )
    for module in modules:
        descriptor: Any = module.DESCRIPTOR
        for service in descriptor.services_by_name.values():
            handlers: dict[str, Any] = {
                method.name: _handler(method, getattr(servicer, method.name), check)
                for method in service.methods
                if hasattr(servicer, method.name)
            }
            made = grpc.method_handlers_generic_handler(service.full_name, handlers)
            server.add_generic_rpc_handlers((made,))
    return server


def _handler(method: Any, function: Callable[[Any], Any], check: Check) -> Any:
    async def unary(request: Any, context: Any) -> Any:
        try:
            await check(method.name, request, _metadata(context))
            return function(request)
        except RefusedError as refused:
            await _abort(refused, context)

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            await check(method.name, request, _metadata(context))
            async for response in function(request):
                yield response
        except RefusedError as refused:
            await _abort(refused, context)

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


async def _abort(refused: RefusedError, context: Any) -> None:
    details = (("grpc-status-details-bin", refused.status.SerializeToString()),)
    await context.abort(refused.code, refused.message, details)
