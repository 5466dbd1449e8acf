"""Making artifacts durable: what a worker hands in, and texts that a run's decisions want kept.

Bytes first, then the row. What a worker hands in is kept while its output is read, so the row is
committed with the line that named it; a text of a decision is kept after that decision, and told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog

from crewd.core.derive import derived_id
from crewd.core.effects import Effect, KeepInOrder, KeepText
from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Artifact, Attempt
from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.reports import ArtifactGiven, Warned
from crewd.core.spec import TaskSpec
from crewd.core.stimuli import Stimulus, TextKept, TextWaits
from crewd.runtime.ids import new_id
from crewd.store.artifacts import ArtifactFiles, Kept, Source
from crewd.store.sources import SourceRefusedError

log = structlog.get_logger()
T = TypeVar("T")

RETRY_SECONDS: Final = 1.0
"""Between tries when a text cannot be kept: the disk is full, mostly."""
RESULT_NAME: Final = "result.txt"
"""What a result that is too long for its row is called, unless its task names it."""
TEXT: Final = "text/plain; charset=utf-8"
BYTES: Final = "application/octet-stream"

Deliver = Callable[[str, Stimulus], Awaitable[None]]
"""Tells a run something, whether it is open or not. Raises RUN_NOT_FOUND when it is deleted."""


class Keeper:
    """Keeps what the worker of one attempt hands in. Blocks: it belongs where output is read."""

    def __init__(
        self,
        files: ArtifactFiles,
        attempt: Attempt,
        spec: TaskSpec,
        known: KnownSecrets = NOTHING_KNOWN,
    ) -> None:
        self._files = files
        self._known = known
        self._run_id = attempt.run_id
        self._place = (attempt.task_id, attempt.number)
        self._cwd = Path(spec.cwd)
        self._result_name = spec.output.name or RESULT_NAME

    def __call__(self, given: ArtifactGiven, data: bytes | None = None) -> Artifact | Warned:
        """Return the row of what is durable now. An OSError is of our disk: try again later.

        With `data` those bytes are kept, and `given` says what they are.
        """
        try:
            kept = self._keep(given, data)
        except SourceRefusedError as error:
            return Warned("artifact_refused", f"artifact {given.name} is not kept: {error}")
        task_id, number = self._place
        return Artifact(
            id=new_id("art"),
            run_id=self._run_id,
            task_id=task_id,
            attempt=number,
            name=given.name or self._result_name,
            kind=given.kind,
            media_type=given.media_type or (TEXT if kept.is_text else BYTES),
            size_bytes=kept.size,
            sha256=kept.sha256,
            source_path=given.path,
            description=given.description,
            redacted=kept.redacted,
        )

    def _keep(self, given: ArtifactGiven, data: bytes | None) -> Kept:
        if data is not None:
            return self._files.keep_bytes(self._run_id, data, given.media_type, self._known)
        if given.path:
            source = Source(root=self._cwd, path=given.path, media_type=given.media_type)
            return self._files.keep_file(self._run_id, source, self._known)
        return self._files.keep_text(self._run_id, given.text, self._known)


class TextKeeper:
    """Carries out `KeepText` effects, however long it takes."""

    def __init__(self, files: ArtifactFiles, executor: Executor, deliver: Deliver) -> None:
        self._files = files
        self._executor = executor
        self._deliver = deliver

    async def keep(self, run_id: str, effects: Sequence[KeepText]) -> None:
        """Return when they are kept and recorded in this order, or their run is gone."""
        try:
            for effect in effects:
                kept = await self._keep(run_id, effect)
                await self._deliver(run_id, TextKept(artifact=_artifact(run_id, effect, kept)))
        except CrewdError as error:
            # Any other reason is trouble of the run, which it tells, and asks anew when it is over.
            if error.reason is Reason.RUN_NOT_FOUND:
                await self._blocking(partial(self._files.delete_run, run_id))

    async def _keep(self, run_id: str, effect: KeepText) -> Kept:
        told = ""
        while True:
            try:
                return await self._blocking(partial(self._files.keep_text, run_id, effect.text))
            except OSError as error:
                reason = error.strerror or str(error)
                if reason != told:
                    log.warning("artifact_waits", run_id=run_id, name=effect.name, detail=reason)
                    await self._deliver(run_id, _waits(effect, reason))
                told = reason
                await asyncio.sleep(RETRY_SECONDS)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def texts_of(effects: Iterable[Effect]) -> Iterator[Sequence[KeepText]]:
    """Give what is to be kept: each text by itself, but for those that have an order."""
    for effect in effects:
        if isinstance(effect, KeepText):
            yield [effect]
        elif isinstance(effect, KeepInOrder):
            yield effect.texts


def _waits(effect: KeepText, reason: str) -> TextWaits:
    message = f"artifact {effect.name} waits to be kept: {reason}; free some space"
    return TextWaits(task_id=effect.task_id, attempt=effect.attempt, message=message)


def _artifact(run_id: str, effect: KeepText, kept: Kept) -> Artifact:
    key = f"{run_id}/{effect.task_id}/{effect.attempt}"
    return Artifact(
        id=derived_id("art", key, effect.kind, effect.name),
        run_id=run_id,
        task_id=effect.task_id,
        attempt=effect.attempt,
        name=effect.name,
        kind=effect.kind,
        media_type=effect.media_type,
        size_bytes=kept.size,
        sha256=kept.sha256,
        description=effect.description,
        truncated=effect.truncated,
        redacted=kept.redacted,
    )
