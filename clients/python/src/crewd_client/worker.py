"""What a worker needs to be one: ask a person, tell how far it is, hand in.

    async with await Worker.from_environment() as worker:
        answer = await worker.ask("Deploy now?", options=[Option("yes"), Option("no")])
        await worker.submit(f"the answer was {answer.choice}")

The daemon may be restarted or upgraded meanwhile: every call goes on as long as it takes.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self, TypeVar

import grpc

from crewd_client._connect import backoff, pause_after
from crewd_client._version import __version__
from crewd_client.client import Client
from crewd_client.errors import CrewdError, UnavailableError
from crewd_client.v1.artifact_pb2 import Artifact, ArtifactKind
from crewd_client.v1.ask_pb2 import ASK_STATUS_ANSWERED, Ask, AskKind, OnTimeout
from crewd_client.v1.attempt_pb2 import OUTCOME_COMPLETED, OUTCOME_FAILED
from crewd_client.v1.worker_service_pb2 import (
    CreateAskOption,
    CreateAskRequest,
    RecordArtifactRequest,
    ReportProgressRequest,
    SubmitResultRequest,
    WaitAskRequest,
)

TASK_TOKEN: Final = "CREWD_TASK_TOKEN"  # noqa: S105  # the name of a variable
POLL: Final = timedelta(seconds=60)
_SLACK: Final = timedelta(seconds=10)
_KEEPING: Final = timedelta(minutes=10)
"""For a large file on a slow disk."""

R = TypeVar("R")


class NotAWorkerError(Exception):
    """The environment holds no task's token: crewd did not start this process."""


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to choose. Without a label its id is shown."""

    id: str
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a question."""

    ask: Ask
    text: str
    """As it was given, while `ask` has it redacted."""

    @property
    def answered(self) -> bool:
        """False: declined, timed out, or not needed any more; `ask.status` tells."""
        return self.ask.status == ASK_STATUS_ANSWERED

    @property
    def choices(self) -> tuple[str, ...]:
        """The ids of the options chosen."""
        return tuple(self.ask.answer.option_ids)

    @property
    def choice(self) -> str:
        """The one option chosen, or else the text."""
        return self.choices[0] if len(self.choices) == 1 else self.text


class Worker:
    """Speaks to the daemon for the task that this process works on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    async def from_environment(
        cls,
        env: Mapping[str, str] | None = None,
        *,
        client_name: str = f"crewd-worker-python/{__version__}",
    ) -> Self:
        """Take socket and token from the variables that crewd starts workers with."""
        env = os.environ if env is None else env
        if not env.get(TASK_TOKEN):
            raise NotAWorkerError(f"{TASK_TOKEN} is not set: crewd did not start this process")
        return cls(await Client.connect(env=env, client_name=client_name))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()

    async def ask(  # noqa: PLR0913  # all but the question are by name
        self,
        question: str,
        *,
        options: Iterable[Option] = (),
        detail: str = "",
        kind: AskKind.ValueType = AskKind.ASK_KIND_UNSPECIFIED,
        allow_text: bool = True,
        multiple: bool = False,
        timeout: timedelta | None = None,  # noqa: ASYNC109  # the daemon keeps the time
        on_timeout: OnTimeout.ValueType = OnTimeout.ON_TIMEOUT_UNSPECIFIED,
        default_option_id: str = "",
        ref: str = "",
    ) -> Answer:
        """Ask a person, and wait until the question is settled, however long that takes.

        Asked again by the next attempt of the task, under the same `ref` or in the same words, it
        is the same question, perhaps with an answer already.
        """
        request = CreateAskRequest(
            question=question,
            options=[
                CreateAskOption(id=each.id, label=each.label, description=each.description)
                for each in options
            ],
            detail=detail,
            kind=kind,
            allow_text=allow_text,
            multiple=multiple,
            on_timeout=on_timeout,
            default_option_id=default_option_id,
            worker_ref=ref,
        )
        if timeout is not None:
            request.timeout.FromTimedelta(timeout)
        return await self.ask_as(request)

    async def ask_as(self, request: CreateAskRequest) -> Answer:
        """Ask what the request says, and wait as `ask` does."""
        request = CreateAskRequest.FromString(request.SerializeToString())
        request.request_id = request.request_id or _new_id()
        asked = await self._persist(lambda: self._client.worker.CreateAsk(request))
        return await self.wait(asked.ask.id)

    async def wait(self, ask_id: str) -> Answer:
        """Wait until an ask of this task is settled."""
        request = WaitAskRequest(ask_id=ask_id)
        request.timeout.FromTimedelta(POLL)
        seconds = (POLL + _SLACK).total_seconds()
        while True:
            got = await self._persist(lambda: self._client.worker.WaitAsk(request, timeout=seconds))
            if got.settled:
                return Answer(got.ask, got.answer_text)

    async def progress(
        self, message: str = "", *, percent: float | None = None, step: str = ""
    ) -> None:
        """Tell how far the work has come."""
        request = ReportProgressRequest(message=message, percent=percent, step=step)
        await self._persist(lambda: self._client.worker.ReportProgress(request))

    async def submit(self, text: str = "", *, data: object = None, ref: str = "") -> None:
        """Hand in the result. `InvalidRequestError` tells what `data` misses of its schema."""
        request = SubmitResultRequest(
            request_id=ref or _new_id(),
            outcome=OUTCOME_COMPLETED,
            text=text,
            data_json="" if data is None else json.dumps(data, allow_nan=False),
        )
        await self._persist(lambda: self._client.worker.SubmitResult(request))

    async def fail(self, message: str, *, text: str = "", retryable: bool = True) -> None:
        """Hand in that the task failed, and whether another attempt may do better."""
        request = SubmitResultRequest(
            request_id=_new_id(),
            outcome=OUTCOME_FAILED,
            message=message,
            text=text,
            retryable=retryable,
        )
        await self._persist(lambda: self._client.worker.SubmitResult(request))

    async def record_artifact(  # noqa: PLR0913  # all but the name are by name
        self,
        name: str,
        *,
        path: str | os.PathLike[str] | None = None,
        data: bytes | None = None,
        kind: ArtifactKind.ValueType = ArtifactKind.ARTIFACT_KIND_UNSPECIFIED,
        media_type: str = "",
        description: str = "",
    ) -> Artifact:
        """Keep a file of the task's directory, or bytes; it may be changed or deleted then."""
        request = RecordArtifactRequest(
            request_id=_new_id(),
            name=name,
            kind=kind,
            media_type=media_type,
            description=description,
        )
        if path is not None:
            request.path = os.fspath(path)
        if data is not None:
            request.data = data
        recorded = await self._persist(
            lambda: self._client.worker.RecordArtifact(request, timeout=_KEEPING.total_seconds())
        )
        return recorded.artifact

    async def _persist(self, call: Callable[[], Awaitable[R]]) -> R:
        """Call until the daemon answers: a worker was started by one, so it comes back."""
        waits = backoff()
        while True:
            try:
                return await call()
            except CrewdError as error:
                if not _is_away(error):
                    raise
                wait = pause_after(error, waits)
            await asyncio.sleep(wait)
            self._client.refresh()


def _is_away(error: CrewdError) -> bool:
    ended = error.code in {grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}
    return isinstance(error, UnavailableError) or (ended and not error.reason)


def _new_id() -> str:
    return os.urandom(16).hex()
