"""Instead of a daemon: answers from data, for what a real one does not do at will."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from crewd_client.commands.contract import methods, spell
from crewd_client.json import from_json, to_json
from crewd_client.locate import DaemonFile, default_socket, make_socket_dir
from crewd_client.v1 import daemon_service_pb2
from tests.conformance.files import Files, StageError, Step
from tests.conformance.refuse import refuse

Answer = dict[str, object]
INFO = "DaemonService/GetServerInfo"
TOKEN = "a-token"  # noqa: S105
STORE = "store-1"
HANG: Answer = {"then": "hang"}


def contract() -> dict[str, MethodDescriptor]:
    """Give every method as `Service/Method`."""
    return {spell(method): method for method in methods()}


class Script(grpc.GenericRpcHandler):
    """Serves what it was given, and keeps what it was asked."""

    def __init__(self, files: Files) -> None:
        self.requests: list[dict[str, object]] = []
        self._files = files
        self._methods = contract()
        self._answers: dict[str, list[Answer]] = {}
        self._server: grpc.aio.Server | None = None

    async def serve(self, step: Step) -> dict[str, object]:
        """Answer so from now on; begin to serve at the first call."""
        given = cast("dict[str, list[Answer]]", step.get("answers", {}))
        wrong = [
            name for name, answers in given.items() if name not in self._methods or not answers
        ]
        if wrong:
            raise StageError(f"no such method, or no answers: {wrong}")
        info = from_json({"server": self._info()}, daemon_service_pb2.GetServerInfoResponse)
        itself: Answer = {"reply": to_json(info)}
        self._answers = {INFO: [itself], **{name: [*each] for name, each in given.items()}}
        if self._server is None:
            await self._start()
        return self._vars()

    async def end(self) -> None:
        if self._server is not None:
            await self._server.stop(None)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        name = handler_call_details.method.removeprefix("/crewd.v1.")
        if name not in self._answers:
            return None
        if self._methods[name].server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(name))
        return grpc.unary_unary_rpc_method_handler(self._unary(name))

    def _unary(self, name: str) -> Any:  # noqa: ANN401  # grpc has no type for a behaviour
        async def behave(data: bytes, context: Any) -> bytes:  # noqa: ANN401
            answer = self._asked(name, data, context)
            if "error" in answer:
                await refuse(context, answer["error"])
            if answer == HANG:
                await asyncio.Event().wait()
            return self._bytes(name, answer)

        return behave

    def _stream(self, name: str) -> Any:  # noqa: ANN401
        async def behave(data: bytes, context: Any) -> AsyncIterator[bytes]:  # noqa: ANN401
            answer = self._asked(name, data, context)
            for part in cast("list[Answer]", answer.get("stream", [])):
                yield self._bytes(name, part)
            then = answer if "error" in answer else answer.get("then", "end")
            if isinstance(then, dict):
                await refuse(context, cast("Answer", then)["error"])
            if then == "hang":
                await asyncio.Event().wait()

        return behave

    def _asked(self, name: str, data: bytes, context: Any) -> Answer:  # noqa: ANN401
        kind: type[Message] = GetMessageClass(self._methods[name].input_type)
        metadata = {k: v for k, v in context.invocation_metadata() if isinstance(v, str)}
        request = to_json(kind.FromString(data))
        self.requests.append({"method": name, "request": request, "metadata": metadata})
        answers = self._answers[name]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _bytes(self, name: str, answer: Answer) -> bytes:
        if "wire" in answer:
            return bytes.fromhex(str(answer["wire"]))
        kind: type[Message] = GetMessageClass(self._methods[name].output_type)
        return from_json(answer["reply"], kind).SerializeToString()

    async def _start(self) -> None:
        socket = default_socket(self._files.state_dir, self._files.env())
        make_socket_dir(socket)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self,))
        self._server.add_insecure_port(f"unix:{socket}")
        await self._server.start()
        self._files.state_dir.mkdir(mode=0o700)
        token, state_dir = self._files.state_dir / "token", str(self._files.state_dir)
        token.write_text(TOKEN)
        told = DaemonFile(1, "script", STORE, 1, "0", str(socket), str(token), state_dir)
        (self._files.state_dir / "daemon.json").write_text(told.text())

    def _info(self) -> dict[str, object]:
        return {
            "version": "0",
            "api_versions": ["crewd.v1"],
            "instance_id": "script",
            "store_id": STORE,
            "state_dir": str(self._files.state_dir),
            "status": "serving",
            "heartbeat_interval": "15s",
        }

    def _vars(self) -> dict[str, object]:
        socket = default_socket(self._files.state_dir, self._files.env())
        return {
            "state_dir": str(self._files.state_dir),
            "socket": str(socket),
            "token": TOKEN,
            "instance_id": "script",
            "store_id": STORE,
        }
