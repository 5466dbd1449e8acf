"""Errors as they travel: a status with details in the trailers (google.aip.dev/193)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status


async def abort(
    context: Any,  # noqa: ANN401  # grpc's own is untyped
    code: grpc.StatusCode,
    message: str,
    details: Iterable[Message],
) -> None:
    """End a call with an error."""
    number: int = code.value[0]
    status = Status(code=number, message=message)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    trailers = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, message, trailers if status.details else ())
