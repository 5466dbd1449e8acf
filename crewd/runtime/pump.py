"""Reads one live attempt's output: a step in a thread, its commit, the host told, the next step.

Nothing is read ahead of what is committed by more than a step, so a worker that writes faster than
its run can record is held up by its own pipe and by nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog

from crewd.core.model import Attempt, Survivor
from crewd.core.redaction.masking import Masking
from crewd.core.redaction.redactor import redact
from crewd.core.reports import Verdict
from crewd.core.spec import TaskSpec
from crewd.core.stimuli import Stimulus, WorkerExited, WorkerReported
from crewd.runtime.ids import new_ask_id
from crewd.runtime.keeping import Keeper
from crewd.store.artifacts import ArtifactFiles
from crewd.workers.adapter import Exit
from crewd.workers.host_link import ExitSeen, HostLink
from crewd.workers.lines import Stream
from crewd.workers.output import OutputReader, Step
from crewd.workers.registry import adapter_for
from crewd.workers.transcript import Transcript

log = structlog.get_logger()
T = TypeVar("T")

RETRY_SECONDS: Final = 1.0
"""Between tries when a transcript cannot be written: the disk is full, mostly."""


@dataclass(frozen=True, slots=True)
class PumpTools:
    """What every pump shares."""

    link: HostLink
    transcripts: Path
    artifacts: ArtifactFiles
    executor: Executor


class Pump:
    """Follows one attempt from its committed offsets to its exit."""

    def __init__(
        self,
        attempt: Attempt,
        spec: TaskSpec,
        tools: PumpTools,
        commit: Callable[[Stimulus], Awaitable[object]],
        masking: Masking,
    ) -> None:
        self._committed = replace(attempt)
        self._spec = spec
        self._tools = tools
        self._commit = commit
        self._masking = masking
        self._ends = {Stream.STDOUT: attempt.stdout_offset, Stream.STDERR: attempt.stderr_offset}
        self._exit: ExitSeen | None = None
        self._wake = asyncio.Event()
        self._waits_for = ""

    def output(self, stdout: int, stderr: int) -> None:
        """Take note of how far the host's spool goes."""
        self._ends[Stream.STDOUT] = max(stdout, self._ends[Stream.STDOUT])
        self._ends[Stream.STDERR] = max(stderr, self._ends[Stream.STDERR])
        self._wake.set()

    def exit(self, seen: ExitSeen) -> None:
        """Take note that the process tree has ended; its output is read to the end first."""
        self._exit = seen
        self.output(seen.stdout, seen.stderr)

    async def run(self) -> None:
        """Read until the attempt's exit is reported."""
        while True:
            try:
                await self._follow()
            except EOFError as error:
                log.warning("output_missing", attempt=self._committed.key, detail=str(error))
                self._give_up_rest()
            except OSError as error:
                self._say_waiting(str(error))
                if self._exit is not None and self._exit.stopped:
                    self._give_up_rest()  # Nobody waits for its last words, but for its end.
                else:
                    await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _follow(self) -> None:
        reader = await self._blocking(self._make_reader)
        more = True
        while more or self._exit is None:
            if not more:
                await self._wake.wait()
            self._wake.clear()
            ends = self._ends[Stream.STDOUT], self._ends[Stream.STDERR]
            step = await self._blocking(partial(reader.step, *ends))
            await self._record(step)
            more = step.more or ends != tuple(self._ends.values())
        await self._record(await self._blocking(reader.flush))
        seen = self._exit
        verdict = await self._blocking(partial(reader.finish, seen.exit_code, seen.signal))
        await self._commit(exit_stimulus(self._committed, seen, verdict))

    def _make_reader(self) -> OutputReader:
        job, link = self._committed.key, self._tools.link
        spools = {stream: link.spool(job, stream) for stream in Stream}
        return OutputReader(
            self._committed,
            Transcript.of(self._tools.transcripts, self._committed),
            lambda stream, offset, limit: spools[stream].read(offset, limit),
            new_ask_id,
            Keeper(self._tools.artifacts, self._committed, self._spec, self._masking.known),
            masking=self._masking,
        )

    async def _record(self, step: Step) -> None:
        if not step.moved:
            return
        row = self._committed
        await self._commit(
            WorkerReported(
                task_id=row.task_id,
                attempt=row.number,
                stdout_offset=step.stdout_offset,
                stderr_offset=step.stderr_offset,
                stdout_bytes=step.stdout_bytes,
                stderr_bytes=step.stderr_bytes,
                adapter_state=step.adapter_state,
                reports=step.reports,
                writes=step.writes,
            )
        )
        row.stdout_offset, row.stderr_offset = step.stdout_offset, step.stderr_offset
        row.stdout_bytes, row.stderr_bytes = step.stdout_bytes, step.stderr_bytes
        row.adapter_state = step.adapter_state
        self._waits_for = ""
        self._tools.link.consumed(row.key, stdout=row.stdout_offset, stderr=row.stderr_offset)

    def _say_waiting(self, reason: str) -> None:
        """Log it once: a line a second from every pump would take the room that is kept free."""
        if reason != self._waits_for:
            self._waits_for = reason
            log.warning("transcript_waits", attempt=self._committed.key, detail=reason)

    def _give_up_rest(self) -> None:
        """Go on without output that cannot be had, or kept."""
        row = self._committed
        self._ends = {Stream.STDOUT: row.stdout_offset, Stream.STDERR: row.stderr_offset}
        if self._exit is not None:
            self._exit = replace(self._exit, stdout=row.stdout_offset, stderr=row.stderr_offset)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._tools.executor, work)


def silent_exit(attempt: Attempt, seen: ExitSeen) -> WorkerExited:
    """Judge an attempt that wrote nothing at all: no reader, no thread, no file."""
    adapter = adapter_for(attempt.adapter)
    verdict = adapter.end(adapter.initial(), Exit(exit_code=seen.exit_code, signal=seen.signal))
    return exit_stimulus(attempt, seen, verdict)


def exit_stimulus(attempt: Attempt, seen: ExitSeen, verdict: Verdict) -> WorkerExited:
    return WorkerExited(
        task_id=attempt.task_id,
        attempt=attempt.number,
        exit_code=seen.exit_code,
        signal=seen.signal,
        survivors=tuple(Survivor(s.pid, redact(s.command)) for s in seen.survivors),
        stopped=seen.stopped,
        never_started=seen.never_started,
        passed=bool(seen.passed_to),
        stdin_seq=seen.stdin_seq,
        pid=seen.pid,
        verdict=verdict,
    )
