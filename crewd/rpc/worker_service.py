"""WorkerService: what a worker calls for its own task, with its token and no other name.

A request id counts within its attempt: two workers, or two attempts, may choose the same one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from crewd.core.asks import same_question
from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Ask, Attempt
from crewd.core.redaction.masking import Masking
from crewd.core.reports import ArtifactKept, Asked, Report
from crewd.core.state import RunState
from crewd.core.stimuli import AskTaken, Command, WorkerCalled
from crewd.core.words import AskChannel, AskStatus, AttemptStatus, Delivery
from crewd.rpc import convert
from crewd.rpc.auth import WORKER_SERVICE, Metadata
from crewd.rpc.calls import (
    Context,
    Handler,
    answered_before,
    request_key,
    required,
    unary,
)
from crewd.rpc.errors import ask_not_found, draining
from crewd.rpc.ports import Wiring
from crewd.rpc.worker_artifacts import kept, rendered_artifact
from crewd.rpc.worker_reports import asked, progress, result, wait_seconds
from crewd.runtime.actor import Render, RequestKey
from crewd.runtime.jobs import JobKey
from crewd.runtime.keeping import Keeper
from crewd.v1 import worker_service_pb2 as pb

NAME: Final = WORKER_SERVICE

log = structlog.get_logger()


class WorkerService:
    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._auth = wiring.auth
        self._reads = wiring.reads

    def handlers(self) -> dict[str, Handler]:
        return {
            "CreateAsk": unary(self._create_ask, pb.CreateAskRequest.FromString),
            "WaitAsk": unary(self._wait_ask, pb.WaitAskRequest.FromString),
            "ReportProgress": unary(self._report_progress, pb.ReportProgressRequest.FromString),
            "SubmitResult": unary(self._submit_result, pb.SubmitResultRequest.FromString),
            "RecordArtifact": unary(self._record_artifact, pb.RecordArtifactRequest.FromString),
        }

    async def _create_ask(self, request: pb.CreateAskRequest, context: Context) -> bytes:
        job = self._job(context)
        key = _own(job, request_key("CreateAsk", request, request.request_id))
        question = self._masking(job).report(asked(request))
        render = partial(_rendered_ask, question, job.task_id)
        return await self._call(context, question, key, render)

    async def _report_progress(self, request: pb.ReportProgressRequest, context: Context) -> bytes:
        return await self._call(context, progress(request), None, _nothing)

    async def _submit_result(self, request: pb.SubmitResultRequest, context: Context) -> bytes:
        key = _own(self._job(context), request_key("SubmitResult", request, request.request_id))
        return await self._call(context, result(request), key, _nothing)

    async def _record_artifact(self, request: pb.RecordArtifactRequest, context: Context) -> bytes:
        job = self._job(context)
        key = _own(job, request_key("RecordArtifact", request, request.request_id))
        before = await answered_before(self._reads, key)
        if before is not None:
            return before
        attempt = await self._attempt(job)
        task = await self._reads.get_task(job.run_id, job.task_id)
        assert task is not None  # noqa: S101 - it has an attempt
        keeper = Keeper(self._wiring.artifacts, attempt, task.spec, self._masking(job).known)
        artifact = await kept(keeper, request)
        render = partial(rendered_artifact, artifact.id)
        return await self._call(context, ArtifactKept(artifact=artifact), key, render)

    async def _wait_ask(self, request: pb.WaitAskRequest, context: Context) -> bytes:
        job = self._job(context)
        ask_id = required("ask_id", request.ask_id)
        ask = await self._settled(job, ask_id, wait_seconds(request))
        response = pb.WaitAskResponse(ask=convert.ask(ask))
        if ask.status is not AskStatus.OPEN:
            response.settled = True
            response.answer_text = ask.raw_text or (ask.answer.text if ask.answer else "")
            await self._note_taken(job, ask, context)
        return response.SerializeToString()

    async def _settled(self, job: JobKey, ask_id: str, seconds: float) -> Ask:
        """Return the ask once it is settled, or as it is when the time is up."""
        presence = self._wiring.presence
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        with self._wiring.feed.watch_ask(ask_id) as bell, presence.wakes(bell):
            ask = await self._find(job, ask_id)
            while ask.status is AskStatus.OPEN:
                if presence.draining is not None:
                    raise draining()
                if not await bell.wait(max(0.0, end - clock())):
                    break
                ask = await self._find(job, ask_id)
        return ask

    async def _find(self, job: JobKey, ask_id: str) -> Ask:
        """Read an ask of this task. TOKEN_INVALID once the attempt has ended."""
        ask = await self._reads.get_ask(ask_id)
        # Looked at after the ask: what the ask says to a live attempt was complete then.
        await self._attempt(job)
        if ask is None or (ask.run_id, ask.task_id) != (job.run_id, job.task_id):
            raise ask_not_found(ask_id)
        return ask

    async def _attempt(self, job: JobKey) -> Attempt:
        """Return the attempt that the token is for. TOKEN_INVALID once it has ended."""
        attempt = await self._reads.get_attempt(*job)
        if attempt is None or attempt.status is AttemptStatus.ENDED:
            message = f"attempt {job.number} of task {job.task_id} has ended, and its token with it"
            raise CrewdError(Reason.TOKEN_INVALID, message)
        return attempt

    async def _note_taken(self, job: JobKey, ask: Ask, context: Context) -> None:
        """Record that the outcome goes out. A full disk does not keep it from the worker."""
        mine = ask.attempt == job.number and ask.channel is AskChannel.CALL
        if not mine or ask.delivery is not Delivery.QUEUED:
            return
        taken = AskTaken(ask_id=ask.id, actor=self._auth.worker(_metadata(context)))
        try:
            await self._command(job, taken, None, _nothing)
        except CrewdError as error:
            if error.reason is not Reason.DISK_LOW:
                raise
            log.warning("ask_delivery_not_recorded", ask_id=ask.id, detail=error.message)

    async def _call(
        self, context: Context, report: Report, key: RequestKey | None, render: Render
    ) -> bytes:
        job = self._job(context)
        called = WorkerCalled(
            task_id=job.task_id,
            attempt=job.number,
            report=self._masking(job).report(report),
            actor=self._auth.worker(_metadata(context)),
        )
        return await self._command(job, called, key, render)

    async def _command(
        self, job: JobKey, command: Command, key: RequestKey | None, render: Render
    ) -> bytes:
        try:
            return await self._wiring.supervisor.command(job.run_id, command, key, render)
        except CrewdError as error:
            if error.reason is not Reason.RUN_NOT_FOUND:
                raise
            message = f"run {job.run_id} is gone, and the token of its task with it"
            raise CrewdError(Reason.TOKEN_INVALID, message) from error

    def _masking(self, job: JobKey) -> Masking:
        return self._wiring.supervisor.masking(job)

    def _job(self, context: Context) -> JobKey:
        return self._auth.job(_metadata(context))


def _metadata(context: Context) -> Metadata:
    return context.invocation_metadata() or ()


def _own(job: JobKey, key: RequestKey | None) -> RequestKey | None:
    return None if key is None else replace(key, id=f"{job}/{key.id}")


def _rendered_ask(question: Asked, task_id: str, state: RunState) -> bytes:
    ask = same_question(state, state.attempts[task_id], question)
    assert ask is not None  # noqa: S101 - it was just asked
    return pb.CreateAskResponse(ask=convert.ask(ask)).SerializeToString()


def _nothing(_state: RunState) -> bytes:
    return b""
