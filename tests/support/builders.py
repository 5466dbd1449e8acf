"""Specs, rows and states for tests of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from crewd.core.effects import StartWorker
from crewd.core.model import (
    Actor,
    AskOption,
    Attempt,
    Result,
    Run,
    Survivor,
    Task,
)
from crewd.core.reports import Asked, ResultGiven, Verdict
from crewd.core.spec import (
    Adapter,
    AskPolicy,
    FailureMode,
    Limits,
    OnNeedsAttention,
    OnTimeout,
    RetryPolicy,
    RunSpec,
    TaskSpec,
)
from crewd.core.state import RunState
from crewd.core.states import TASK_LIVE
from crewd.core.stimuli import Create, HostReady, LiveJob, WorkerExited
from crewd.core.units import Instant, Span
from crewd.core.words import (
    ActorKind,
    AttemptStatus,
    Cause,
    Outcome,
    RunStatus,
    TaskStatus,
)

START: Final = Instant(1_893_456_000_000_000)
RUN_ID: Final = "run_1"
HOST_EPOCH: Final = "epoch_1"
HOST: Final = "boot_1/7"
OPERATOR: Final = Actor(ActorKind.OPERATOR, "ann", "crew")
NO_LIMITS: Final = Limits(max_concurrent_workers=4)
FOR_EVER: Final = AskPolicy()
ONCE: Final = RetryPolicy(max_attempts=1)
THRICE: Final = RetryPolicy(max_attempts=3, jitter=0.0)
DONE: Final = Verdict(outcome=Outcome.COMPLETED, result=Result(text="done"))
BROKEN: Final = Verdict(
    outcome=Outcome.FAILED, cause=Cause.EXIT, message="exited with code 1", retryable=True
)
KILLED: Final = Verdict(
    outcome=Outcome.FAILED, cause=Cause.SIGNAL, message="killed by SIGTERM", retryable=True
)
NO_RESULT: Final = Verdict(
    outcome=Outcome.NEEDS_ATTENTION,
    cause=Cause.NO_RESULT,
    message="ended without handing in a result",
)
YES_NO: Final = (AskOption(id="yes", label="Yes"), AskOption(id="no", label="No"))


def a_task(
    task_id: str,
    *depends_on: str,
    adapter: Adapter = Adapter.COMMAND,
    timeout: Span | None = None,
    retry: RetryPolicy = ONCE,
) -> TaskSpec:
    return TaskSpec(
        id=task_id,
        depends_on=depends_on,
        adapter=adapter,
        command=("work", task_id),
        executable="/bin/work",
        cwd="/w",
        timeout=timeout,
        retry=retry,
    )


def a_worker(task_id: str, *depends_on: str, timeout: Span | None = None) -> TaskSpec:
    """A task whose worker can be told things."""
    return a_task(task_id, *depends_on, adapter=Adapter.JSONL, timeout=timeout, retry=THRICE)


def a_spec(
    *tasks: TaskSpec,
    limits: Limits = NO_LIMITS,
    failure_mode: FailureMode = FailureMode.FAIL_FAST,
    on_needs_attention: OnNeedsAttention = OnNeedsAttention.WAIT,
    asks: AskPolicy = FOR_EVER,
) -> RunSpec:
    return RunSpec(
        goal="measure and report",
        title="Measure",
        cwd="/w",
        path="/bin",
        limits=limits,
        failure_mode=failure_mode,
        on_needs_attention=on_needs_attention,
        asks=asks,
        tasks=tasks,
    )


def a_careful_spec(*tasks: TaskSpec) -> RunSpec:
    """A run that goes on with what a failure leaves possible."""
    return a_spec(*tasks, failure_mode=FailureMode.CONTINUE)


def a_create(spec: RunSpec) -> Create:
    return Create(run_id=RUN_ID, spec=spec, actor=OPERATOR, request_id="request_1")


def an_empty_state() -> RunState:
    """What an actor has before its run is created."""
    return RunState(Run(id=RUN_ID, spec=a_spec()))


def a_run(spec: RunSpec, status: RunStatus = RunStatus.RUNNING) -> Run:
    return Run(
        id=RUN_ID,
        spec=replace(spec, tasks=()),
        title=spec.title,
        status=status,
        create_time=START,
        start_time=START,
        last_run_sequence=1,
    )


def a_state(
    spec: RunSpec,
    statuses: Mapping[str, TaskStatus],
    *,
    run_status: RunStatus = RunStatus.RUNNING,
    reasons: Mapping[str, str] | None = None,
) -> RunState:
    """A run as it would be loaded with its tasks in these statuses; live ones have an attempt."""
    run = a_run(spec, run_status)
    tasks: list[Task] = []
    attempts: list[Attempt] = []
    for position, task_spec in enumerate(spec.tasks):
        status = statuses.get(task_spec.id, TaskStatus.QUEUED)
        task = Task(
            run_id=RUN_ID, id=task_spec.id, position=position, spec=task_spec, status=status
        )
        task.status_reason = (reasons or {}).get(task.id, "")
        if status in TASK_LIVE:
            task.attempt = 1
            attempts.append(an_attempt(task))
        run.task_counts[status] = run.task_counts.get(status, 0) + 1
        tasks.append(task)
    state = RunState(run, tasks=tasks, attempts=attempts)
    state.epoch, state.host = HOST_EPOCH, HOST
    return state


def an_attempt(task: Task, status: AttemptStatus = AttemptStatus.RUNNING) -> Attempt:
    return Attempt(
        run_id=RUN_ID,
        task_id=task.id,
        number=task.attempt,
        status=status,
        epoch=HOST_EPOCH,
        adapter=task.spec.adapter,
        argv=task.spec.command,
        pid=100,
        create_time=START,
    )


def host_ready(
    epoch: str = HOST_EPOCH,
    *,
    live: Mapping[str, LiveJob] | None = None,
    exiting: frozenset[str] = frozenset(),
    recovery: bool = False,
) -> HostReady:
    return HostReady(epoch=epoch, host=HOST, live=live or {}, exiting=exiting, recovery=recovery)


def an_exit(  # noqa: PLR0913 - a test names only what it is about
    task_id: str,
    attempt: int,
    verdict: Verdict = DONE,
    *,
    stopped: bool = False,
    never_started: bool = False,
    passed: bool = False,
    survivors: tuple[Survivor, ...] = (),
) -> WorkerExited:
    """A worker's end: by a signal when it was stopped, else by an exit code that fits."""
    code = 0 if verdict.outcome in {Outcome.COMPLETED, Outcome.NEEDS_ATTENTION} else 1
    signalled = stopped and not never_started
    return WorkerExited(
        task_id=task_id,
        attempt=attempt,
        exit_code=None if stopped or never_started else code,
        signal=15 if signalled else None,
        survivors=survivors,
        stopped=stopped,
        never_started=never_started,
        passed=passed,
        verdict=verdict,
    )


def a_question(  # noqa: PLR0913 - a test names only what it is about
    ref: str = "q1",
    *,
    question: str = "Go on?",
    options: tuple[AskOption, ...] = (),
    allow_text: bool = True,
    multiple: bool = False,
    timeout: Span | None = None,
    on_timeout: OnTimeout | None = None,
    default: str = "",
    ask_id: str = "",
) -> Asked:
    return Asked(
        id=ask_id or f"ask_{ref}",
        ref=ref,
        question=question,
        options=options,
        allow_text=allow_text,
        multiple=multiple,
        timeout=timeout,
        on_timeout=on_timeout,
        default_option_id=default,
    )


def a_result(text: str = "done") -> ResultGiven:
    return ResultGiven(result=Result(text=text), outcome=Outcome.COMPLETED)


def a_start(task: TaskSpec, attempt: int = 1, epoch: str = HOST_EPOCH) -> StartWorker:
    """The effect that has the host start the task's worker."""
    return StartWorker(
        task_id=task.id,
        attempt=attempt,
        epoch=epoch,
        adapter=task.adapter,
        agent=None,
        model=task.model,
        executable=task.executable,
        argv=task.command,
        cwd=task.cwd,
        path="/bin",
        env={},
        env_from=(),
        stdin=task.adapter is Adapter.JSONL,
        keep_children=False,
    )
