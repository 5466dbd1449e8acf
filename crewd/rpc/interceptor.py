"""What every call goes through: who calls, whether the daemon is ready, how errors are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from secrets import token_hex
from typing import Any, Final, cast

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from grpc.aio import InternalError, ServerInterceptor

from crewd.core.errors import CrewdError, Reason
from crewd.rpc.auth import WORKER_SERVICE, Metadata
from crewd.rpc.calls import Context, Handler
from crewd.rpc.errors import DETAILS_KEY, draining, invalid, recovering, refusal
from crewd.rpc.ports import Wiring
from crewd.rpc.unknown import refuse_unknown_fields

VERSION_KEY: Final = "x-crewd-version"

_HEALTH: Final = "/grpc.health.v1."
_RUNS: Final = "/crewd.v1.RunService/"
_ASKS: Final = "/crewd.v1.AskService/"
_DAEMON: Final = "/crewd.v1.DaemonService/"
_WORKER: Final = f"/{WORKER_SERVICE}/"
_ALWAYS: Final = frozenset({f"{_DAEMON}GetServerInfo", f"{_DAEMON}Diagnose"})
"""Served while the daemon recovers: they tell how that goes."""
_ENDING_WORK: Final = frozenset(
    {f"{_DAEMON}Drain", f"{_ASKS}AnswerAsk", f"{_RUNS}CancelRun", f"{_RUNS}CancelTasks"}
)
"""Writes that start nothing and let running work end; a drain that waits for it needs them."""
_NEW_WORK: Final = frozenset(
    f"{_RUNS}{name}"
    for name in ("CreateRun", "ResumeRun", "RetryTasks", "ResolveTask", "SteerTask", "DeleteRun")
)
_OF_WORKERS: Final = frozenset(
    f"{_WORKER}{name}" for name in ("CreateAsk", "ReportProgress", "SubmitResult", "RecordArtifact")
)
"""Writes of work that runs, which goes on and comes to its end while the daemon drains."""
_WRITES: Final = _ENDING_WORK | _NEW_WORK | _OF_WORKERS

log = structlog.get_logger()


class Interceptor(ServerInterceptor):
    """Guards every method but health."""

    def __init__(self, wiring: Wiring) -> None:
        self._auth = wiring.auth
        self._presence = wiring.presence
        self._status = wiring.status
        self._trailers = ((VERSION_KEY, wiring.identity.version),)
        self._guarded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_HEALTH):
            return handler
        try:
            self._admit(method, handler_call_details.invocation_metadata or ())
        except CrewdError as error:
            return self._refusing(error)
        if handler.request_streaming:
            return handler
        return self._guarded.get(method) or self._guard(method, handler)

    def _admit(self, method: str, metadata: Metadata) -> None:
        self._auth.check(method, metadata)
        if not self._presence.recovered and method.startswith("/crewd.") and method not in _ALWAYS:
            raise recovering()
        if method in _NEW_WORK and self._status() == "draining":
            raise draining()

    def _refusing(self, error: CrewdError) -> Handler:
        """Return a handler that refuses whatever the method is, without reading the request."""

        async def refuse(_requests: AsyncIterator[bytes], context: Context) -> None:
            await self._abort(context, error)

        return grpc.stream_stream_rpc_method_handler(refuse)

    def _guard(self, method: str, handler: Handler) -> Handler:
        streams: bool = handler.response_streaming
        behaviour: Any = handler.unary_stream if streams else handler.unary_unary
        checked = method in _WRITES
        parse = cast("Callable[[bytes], Message]", handler.request_deserializer)

        async def guarded(data: bytes, context: Context) -> bytes | None:
            context.set_trailing_metadata(self._trailers)
            try:
                request = _parsed(parse, data)
                if checked:
                    refuse_unknown_fields(request)
                return cast("bytes | None", await behaviour(request, context))
            except CrewdError as error:
                refused = error
            except Exception as error:  # noqa: BLE001 - a bug in one call is told, not spread
                if isinstance(error, InternalError) and streams:
                    return None
                refused = _incident(method, error)
            await self._abort(context, refused)
            return None

        make: Any = (
            grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
        )
        result: Handler = make(guarded, None, handler.response_serializer)
        self._guarded[method] = result
        return result

    async def _abort(self, context: Context, error: CrewdError) -> None:
        code, message, details = refusal(error)
        await context.abort(code, message, ((DETAILS_KEY, details), *self._trailers))


def _parsed(parse: Callable[[bytes], Message], data: bytes) -> Message:
    try:
        return parse(data)
    except DecodeError as error:
        raise invalid("request", "is not the message of this method") from error


def _incident(method: str, error: Exception) -> CrewdError:
    incident = f"incident_{token_hex(5)}"
    log.error("call_failed", method=method, incident_id=incident, exc_info=error)
    return CrewdError(
        Reason.INTERNAL,
        f"an internal error; the daemon's log has incident {incident}",
        incident_id=incident,
    )
