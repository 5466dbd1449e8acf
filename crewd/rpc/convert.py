"""The rows of the core as messages of the contract."""

from __future__ import annotations

from typing import Final

from crewd.core import model as m
from crewd.core import words as w
from crewd.core.spec import Limits, RunSpec
from crewd.core.states import TASK_LIVE, TASK_TERMINAL
from crewd.rpc import enums
from crewd.rpc.wire import KIB, cut, cut_all, duration, stamp
from crewd.v1 import (
    actor_pb2,
    artifact_pb2,
    ask_pb2,
    attempt_pb2,
    failure_pb2,
    progress_pb2,
    run_pb2,
    spec_pb2,
    task_pb2,
    usage_pb2,
)

WHOLE: Final = 1 << 62
"""No limit for texts."""
BRIEF: Final = KIB
"""The limit for texts in events and lists."""
SURVIVOR_COMMAND_BYTES: Final = 256


def run(row: m.Run, *, texts: int = WHOLE) -> run_pb2.Run:
    """Return the run; `texts` bounds each of its free texts in bytes."""
    message = run_pb2.Run(
        id=row.id,
        title=cut(row.title, texts),
        goal=cut(row.spec.goal, texts),
        status=enums.RUN_STATUS[row.status],
        status_reason=row.status_reason,
        status_message=cut(row.status_message, texts),
        workspace=run_pb2.Workspace(cwd=row.spec.cwd, project_root=row.spec.project_root),
        labels=row.spec.labels,
        created_by=row.created_by,
        request_id=row.request_id,
        limits=limits(row.spec.limits),
        failure_mode=enums.FAILURE_MODE[row.spec.failure_mode],
        progress=_run_progress(row),
        task_counts=task_counts(row),
        open_ask_count=row.open_ask_count,
        usage=usage(row.usage),
        result=_run_result(row.result, texts),
        error=failure(row.error, texts),
        resume_count=row.resume_count,
        keep=row.spec.keep,
        last_sequence=row.last_sequence,
        last_run_sequence=row.last_run_sequence,
        source=_run_source(row.spec),
    )
    stamp(message.create_time, row.create_time)
    if row.start_time is not None:
        stamp(message.start_time, row.start_time)
    if row.end_time is not None:
        stamp(message.end_time, row.end_time)
    stamp(message.update_time, row.update_time)
    return message


def _run_source(spec: RunSpec) -> run_pb2.RunSource | None:
    if not (spec.team or spec.workflow or spec.agent or spec.file):
        return None
    return run_pb2.RunSource(
        team=spec.team, workflow=spec.workflow, agent=spec.agent, file=spec.file
    )


def limits(row: Limits) -> spec_pb2.RunLimits:
    return spec_pb2.RunLimits(
        max_concurrent_workers=row.max_concurrent_workers,
        max_tasks=row.max_tasks,
        max_duration=None if row.max_duration is None else duration(row.max_duration),
        max_tokens=row.max_tokens or 0,
        max_cost_micros=row.max_cost_micros or 0,
        max_turns=row.max_turns or 0,
    )


def task_counts(row: m.Run) -> run_pb2.TaskCounts:
    return run_pb2.TaskCounts(**{status.value: n for status, n in row.task_counts.items()})


def _run_progress(row: m.Run) -> progress_pb2.Progress | None:
    total = sum(row.task_counts.values())
    if total == 0:
        return None
    settled = sum(row.task_counts.get(status, 0) for status in TASK_TERMINAL)
    last = row.progress
    message = progress_pb2.Progress(
        percent=100.0 * settled / total,
        step=last.step if last else "",
        message=last.message if last else "",
    )
    stamp(message.update_time, row.update_time)
    return message


def _run_result(row: m.Result | None, texts: int) -> run_pb2.RunResult | None:
    if row is None:
        return None
    text = cut(row.text, texts)
    return run_pb2.RunResult(
        text=text,
        truncated=row.truncated or text is not row.text,
        artifact_id=row.artifact_id,
    )


def task(
    row: m.Task, *, project_root: str = "", texts: int = WHOLE, listed: int | None = None
) -> task_pb2.Task:
    """Return the task without its attempts.

    `texts` bounds its prompt and its command each, `listed` how many dependencies it names.
    """
    spec = row.spec
    message = task_pb2.Task(
        id=row.id,
        run_id=row.run_id,
        title=spec.title,
        role=spec.role,
        adapter=spec.adapter.value,
        phase=spec.phase,
        status=enums.TASK_STATUS[row.status],
        status_reason=row.status_reason,
        status_message=row.status_message,
        depends_on=spec.depends_on if listed is None else spec.depends_on[:listed],
        prompt=cut(spec.prompt, texts),
        command=cut_all(spec.command, texts),
        attempt=row.attempt,
        max_attempts=spec.retry.max_attempts,
        current_tool=row.current_tool,
        open_ask_ids=row.open_ask_ids,
        workspace=run_pb2.Workspace(cwd=spec.cwd, project_root=_root_of(spec.cwd, project_root)),
        last_sequence=row.last_sequence,
        agent=spec.agent,
        read_only=spec.read_only,
    )
    _add_course(message, row)
    _add_outcome(message, row)
    return message


def _root_of(cwd: str, project_root: str) -> str:
    inside = cwd == project_root or cwd.startswith(f"{project_root.rstrip('/')}/")
    return project_root if inside else ""


def _add_course(message: task_pb2.Task, row: m.Task) -> None:
    """Set what is only there for tasks that have begun, or wait for another attempt."""
    stamp(message.create_time, row.create_time)
    stamp(message.update_time, row.update_time)
    if row.status is w.TaskStatus.QUEUED and row.not_before is not None:
        stamp(message.not_before, row.not_before)
        message.hold.reason = task_pb2.HOLD_REASON_BACKOFF
        stamp(message.hold.until, row.not_before)
    if row.attempt == 0:
        return
    if row.start_time is not None:
        stamp(message.start_time, row.start_time)
    if row.last_activity_time is not None:
        stamp(message.last_activity_time, row.last_activity_time)
    if row.progress is not None:
        message.progress.CopyFrom(progress(row.progress))
    message.capabilities.CopyFrom(capabilities(row.capabilities))


def _add_outcome(message: task_pb2.Task, row: m.Task) -> None:
    if row.usage is not m.NO_USAGE:
        message.usage.CopyFrom(usage(row.usage))
    if row.result is not None:
        message.result.CopyFrom(task_result(row.result))
    if row.error is not None:
        message.error.CopyFrom(_failure(row.error, WHOLE))
    if row.end_time is not None:
        stamp(message.end_time, row.end_time)
    if row.attempt > 1 or (row.attempt == 1 and row.status not in TASK_LIVE):
        message.evidence.result_present = row.result is not None


def task_result(row: m.Result, *, texts: int = WHOLE) -> task_pb2.TaskResult:
    """Return the result; data that does not fit into `texts` bytes is left out, not cut."""
    text = cut(row.text, texts)
    data = row.data_json if len(row.data_json) * 4 <= texts else cut(row.data_json, texts)
    whole = text is row.text and data is row.data_json
    return task_pb2.TaskResult(
        text=text,
        truncated=row.truncated or not whole,
        data_json=data if data is row.data_json else "",
        artifact_id=row.artifact_id,
    )


def attempt(row: m.Attempt) -> attempt_pb2.Attempt:
    message = attempt_pb2.Attempt(
        run_id=row.run_id,
        task_id=row.task_id,
        number=row.number,
        status=enums.ATTEMPT_STATUS[row.status],
        outcome=attempt_pb2.OUTCOME_UNSPECIFIED
        if row.outcome is None
        else enums.OUTCOME[row.outcome],
        cause=cause(row.cause),
        message=row.message,
        retryable=row.retryable,
        adapter=row.adapter,
        model=row.model,
        worker_version=row.worker_version,
        session_id=row.session_id,
        argv=row.argv,
        pid=row.pid,
        host=row.host,
        exit_code=row.exit_code,
        signal=row.signal or 0,
        survivors=survivors(row.survivors),
        usage=usage(row.usage),
        stdout_bytes=row.stdout_bytes,
        stderr_bytes=row.stderr_bytes,
        prompt_artifact_id=row.prompt_artifact_id,
        transcript_artifact_id=row.transcript_artifact_id,
    )
    stamp(message.create_time, row.create_time)
    if row.start_time is not None:
        stamp(message.start_time, row.start_time)
    if row.end_time is not None:
        stamp(message.end_time, row.end_time)
    if row.status is w.AttemptStatus.ENDED:
        message.evidence.result_present = row.result is not None
    return message


def artifact(row: m.Artifact) -> artifact_pb2.Artifact:
    message = artifact_pb2.Artifact(
        id=row.id,
        run_id=row.run_id,
        task_id=row.task_id,
        attempt=row.attempt,
        name=row.name,
        kind=enums.ARTIFACT_KIND[row.kind],
        media_type=row.media_type,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        source_path=row.source_path,
        description=row.description,
        truncated=row.truncated,
        redacted=row.redacted,
        last_sequence=row.last_sequence,
    )
    stamp(message.create_time, row.create_time)
    return message


def ask(row: m.Ask, *, texts: int = WHOLE) -> ask_pb2.Ask:
    """Return the ask; `texts` bounds its question, its detail and each text of an option."""
    message = ask_pb2.Ask(
        id=row.id,
        run_id=row.run_id,
        task_id=row.task_id,
        attempt=row.attempt,
        worker_ref=row.worker_ref,
        kind=enums.ASK_KIND[row.kind],
        status=enums.ASK_STATUS[row.status],
        title=row.title,
        question=cut(row.question, texts),
        detail=cut(row.detail, texts),
        options=[_option(option, texts) for option in row.options],
        allow_text=row.allow_text,
        min_choices=row.min_choices,
        max_choices=row.max_choices,
        default_option_id=row.default_option_id,
        on_timeout=enums.ON_TIMEOUT[row.on_timeout],
        answer=answer(row.answer, texts),
        answered_by=None if row.answered_by is None else actor(row.answered_by),
        delivery=enums.DELIVERY[row.delivery],
        run_title=row.run_title,
        task_title=row.task_title,
        workspace_cwd=row.workspace_cwd,
        last_sequence=row.last_sequence,
    )
    stamp(message.create_time, row.create_time)
    if row.expire_time is not None:
        stamp(message.expire_time, row.expire_time)
    if row.settle_time is not None:
        stamp(message.settle_time, row.settle_time)
    return message


def _option(row: m.AskOption, texts: int) -> ask_pb2.AskOption:
    return ask_pb2.AskOption(
        id=row.id,
        label=cut(row.label, texts),
        description=cut(row.description, texts),
        effect=row.effect,
    )


def answer(row: m.Answer | None, texts: int = WHOLE) -> ask_pb2.AskAnswer | None:
    if row is None:
        return None
    return ask_pb2.AskAnswer(
        option_ids=row.option_ids, text=cut(row.text, texts), note=cut(row.note, texts)
    )


def actor(row: m.Actor) -> actor_pb2.Actor:
    return actor_pb2.Actor(kind=enums.ACTOR_KIND[row.kind], name=row.name, client=row.client)


def usage(row: m.Usage) -> usage_pb2.Usage:
    told = row != m.NO_USAGE
    return usage_pb2.Usage(
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        turns=row.turns,
        cost_micros=row.cost_micros,
        source=usage_pb2.USAGE_SOURCE_REPORTED if told else usage_pb2.USAGE_SOURCE_UNSPECIFIED,
    )


def progress(row: m.Progress) -> progress_pb2.Progress:
    message = progress_pb2.Progress(percent=row.percent, step=row.step, message=row.message)
    stamp(message.update_time, row.update_time)
    return message


def capabilities(row: m.Capabilities) -> attempt_pb2.Capabilities:
    return attempt_pb2.Capabilities(
        can_ask=row.can_ask,
        can_steer=row.can_steer,
        can_interrupt=row.can_interrupt,
        can_resume=row.can_resume,
    )


def failure(row: m.Failure | None, texts: int = WHOLE) -> failure_pb2.Failure | None:
    return None if row is None else _failure(row, texts)


def _failure(row: m.Failure, texts: int) -> failure_pb2.Failure:
    return failure_pb2.Failure(
        reason=row.reason,
        message=cut(row.message, texts),
        task_id=row.task_id,
        retryable=row.retryable,
    )


def survivors(rows: tuple[m.Survivor, ...]) -> list[failure_pb2.Survivor]:
    return [
        failure_pb2.Survivor(pid=row.pid, command=cut(row.command, SURVIVOR_COMMAND_BYTES))
        for row in rows
    ]


def cause(row: w.Cause | None) -> failure_pb2.Cause.ValueType:
    return failure_pb2.CAUSE_UNSPECIFIED if row is None else enums.CAUSE[row]
