"""An error as the daemon would send it, or a later one might."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo

from crewd_client.json import from_json
from crewd_client.v1.ask_pb2 import Ask
from tests.conformance.files import texts_of
from tests.support.refusals import abort


async def refuse(context: Any, given: object) -> None:  # noqa: ANN401  # grpc's own is untyped
    """End the call with an error made of data."""
    error = cast("dict[str, object]", given)
    code = grpc.StatusCode[str(error["code"])]
    await abort(context, code, str(error.get("message", "")), _details(error))


def _details(error: dict[str, object]) -> Iterator[Message]:
    if "reason" in error:
        yield ErrorInfo(
            reason=str(error["reason"]),
            domain=str(error.get("domain", "crewd")),
            metadata=texts_of(error.get("metadata")),
        )
    if "violations" in error:
        listed = [texts_of(each) for each in cast("list[object]", error["violations"])]
        broken = [
            BadRequest.FieldViolation(field=each["field"], description=each["description"])
            for each in listed
        ]
        yield BadRequest(field_violations=broken)
    if "retry_after" in error:
        delay = Duration()
        delay.FromJsonString(str(error["retry_after"]))
        yield RetryInfo(retry_delay=delay)
    if "ask" in error:
        yield from_json(error["ask"], Ask)
