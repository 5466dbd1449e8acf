"""CreateRunRequest to RunSpec: everything is checked, and every default filled in.

Blocks for a moment when it looks at directories and programs, and takes its time for thousands of
tasks, so it belongs in a thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final, NamedTuple

from google.protobuf.json_format import MessageToDict

from crewd.core import graph
from crewd.core.output_schema import schema_problem
from crewd.core.spec import (
    Adapter,
    AskPolicy,
    FailureMode,
    Limits,
    OnNeedsAttention,
    OnTimeout,
    OutputSpec,
    RetryPolicy,
    RunSpec,
    TaskSpec,
)
from crewd.core.units import Span
from crewd.core.verdict import VERDICT_SCHEMA
from crewd.rpc import enums
from crewd.rpc.checks import (
    LABEL_KEY_BYTES,
    LABEL_VALUE_BYTES,
    LABELS,
    PROMPT_BYTES,
    TASKS_PER_RUN,
    TITLE_BYTES,
    Problems,
)
from crewd.rpc.resolve import in_directory, resolved
from crewd.rpc.wire import cut
from crewd.v1 import spec_pb2 as pb
from crewd.v1.run_service_pb2 import CreateRunRequest
from crewd.workers.environment import absolute_entries

_TASK_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_OUTPUT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_NEEDS_COMMAND: Final = frozenset({Adapter.COMMAND, Adapter.JSONL})
PI_COMMAND: Final = ("pi",)
FILE_BYTES: Final = 4096
"""The most bytes of the name of a file."""
_MOST_ATTEMPTS: Final = 1000
_MOST_WORKERS: Final = 10_000
_MOST: Final = 2**63 - 1
_WORKSPACE_MODES: Final[Mapping[int, str]] = {pb.WORKSPACE_MODE_SHARED: ""}
_NO_TIME: Final = Span(0)


class Staffed(NamedTuple):
    """A run that knows who does it, and what its creator should know of the files it came from."""

    spec: RunSpec
    warnings: tuple[str, ...] = ()


Staff = Callable[[RunSpec, pb.RunSpec], Staffed]
"""Makes the tasks of a team, workflow or agent, and freezes the agents and skills that are named.
`workspace.cwd` is known to be a directory by then."""
_DEFAULTS: Final = RetryPolicy()


def checked_spec(request: CreateRunRequest, *, daemon_path: str, staff: Staff) -> Staffed:
    """Return what the run is to do, or raise every problem of it that can be told at once."""
    problems = Problems()
    spec = _run(problems, request.spec)
    spec = replace(
        spec,
        path=absolute_entries(request.env.path or daemon_path),
        env=problems.variables("env.vars", request.env.vars),
        file=problems.bounded("file", request.file, FILE_BYTES),
    )
    problems.argument("env.path", request.env.path)
    problems.refuse()
    spec, warnings = staff(in_directory(spec), request.spec)
    spec = resolved(replace(spec, tasks=tuple(map(_with_verdict, spec.tasks))))
    graph.check(spec.tasks)
    return Staffed(spec, warnings)


def _run(problems: Problems, spec: pb.RunSpec) -> RunSpec:
    retry = _retry(problems, "retry", spec.retry)
    tasks = _tasks(problems, spec.tasks, retry)
    title = problems.bounded("title", spec.title, TITLE_BYTES) or _title(spec.goal, tasks)
    problems.known("workspace.mode", spec.workspace.mode, _WORKSPACE_MODES, "")
    return RunSpec(
        goal=problems.bounded("goal", spec.goal, PROMPT_BYTES) or title,
        title=title,
        team=spec.team,
        workflow=spec.workflow,
        agent=spec.agent,
        cwd=spec.workspace.cwd,
        limits=_limits(problems, spec),
        failure_mode=problems.known(
            "failure_mode", spec.failure_mode, enums.TO_FAILURE_MODE, FailureMode.FAIL_FAST
        ),
        on_needs_attention=problems.known(
            "on_needs_attention",
            spec.on_needs_attention,
            enums.TO_ON_NEEDS_ATTENTION,
            OnNeedsAttention.WAIT,
        ),
        retry=retry,
        asks=_asks(problems, spec.asks),
        labels=_labels(problems, spec),
        keep=spec.keep,
        tasks=tasks,
    )


def _title(goal: str, tasks: Sequence[TaskSpec]) -> str:
    """Return the first line of the goal; without one, what the first task is called."""
    line = goal.strip().partition("\n")[0].strip()
    return cut(line, TITLE_BYTES) or next((task.title or task.id for task in tasks), "")


def _labels(problems: Problems, spec: pb.RunSpec) -> dict[str, str]:
    problems.counted("labels", len(spec.labels), LABELS)
    for key, value in spec.labels.items():
        if not key:
            problems.add("labels", "a label has no name")
        problems.bounded("labels", key, LABEL_KEY_BYTES)
        problems.bounded(f"labels.{cut(key, LABEL_KEY_BYTES)}", value, LABEL_VALUE_BYTES)
    return dict(spec.labels)


def _limits(problems: Problems, spec: pb.RunSpec) -> Limits:
    given, defaults = spec.limits, Limits()
    limits = Limits(
        max_concurrent_workers=problems.count(
            "limits.max_concurrent_workers",
            given.max_concurrent_workers,
            defaults.max_concurrent_workers,
            _MOST_WORKERS,
        ),
        max_tasks=problems.count(
            "limits.max_tasks", given.max_tasks, defaults.max_tasks, TASKS_PER_RUN
        ),
        max_duration=problems.span("limits.max_duration", given.max_duration)
        if given.HasField("max_duration")
        else None,
        max_tokens=problems.count("limits.max_tokens", given.max_tokens, 0, _MOST) or None,
        max_cost_micros=problems.count("limits.max_cost_micros", given.max_cost_micros, 0, _MOST)
        or None,
        max_turns=problems.count("limits.max_turns", given.max_turns, 0, _MOST) or None,
    )
    _source(problems, spec)
    problems.counted("tasks", len(spec.tasks), TASKS_PER_RUN)
    if limits.max_tasks < len(spec.tasks) <= TASKS_PER_RUN:
        problems.add("limits.max_tasks", f"is less than the {len(spec.tasks)} tasks there are")
    return limits


def _source(problems: Problems, spec: pb.RunSpec) -> None:
    named = [name for name in ("team", "workflow", "agent") if getattr(spec, name)]
    if not spec.tasks and not named:
        problems.add("tasks", "a run needs at least one task, or a team, workflow or agent")
    if named and not spec.goal.strip():
        problems.add("goal", f"required: what the {named[0]} is to do")
    if spec.tasks and named:
        problems.add(named[0], "excludes tasks of its own")
    if spec.agent and len(named) > 1:
        problems.add("agent", f"excludes a {named[0]}")
    if spec.role_overrides and not (spec.team or spec.workflow):
        problems.add("role_overrides", "there are no roles without a team or workflow")


def _retry(problems: Problems, field: str, given: pb.RetryPolicy) -> RetryPolicy:
    backoff, max_backoff = _DEFAULTS.backoff, _DEFAULTS.max_backoff
    if given.HasField("backoff"):
        backoff = problems.span(f"{field}.backoff", given.backoff, least=_NO_TIME)
        max_backoff = max(backoff, max_backoff)
    if given.HasField("max_backoff"):
        max_backoff = problems.span(f"{field}.max_backoff", given.max_backoff, least=_NO_TIME)
        if max_backoff < backoff:
            problems.add(f"{field}.max_backoff", "is less than the backoff")
    jitter = given.jitter if given.HasField("jitter") else _DEFAULTS.jitter
    if not (isfinite(jitter) and 0 <= jitter <= 1):
        problems.add(f"{field}.jitter", "must be from 0 to 1")
    attempts = problems.count(
        f"{field}.max_attempts", given.max_attempts, _DEFAULTS.max_attempts, _MOST_ATTEMPTS
    )
    return RetryPolicy(
        max_attempts=attempts, backoff=backoff, max_backoff=max_backoff, jitter=jitter
    )


def _asks(problems: Problems, given: pb.AskPolicy) -> AskPolicy:
    return AskPolicy(
        on_timeout=problems.known(
            "asks.on_timeout", given.on_timeout, enums.TO_ON_TIMEOUT, OnTimeout.WAIT
        ),
        timeout=problems.span("asks.timeout", given.timeout, least=Span(0))
        if given.HasField("timeout")
        else None,
        default_option_id=problems.bounded(
            "asks.default_option_id", given.default_option_id, TITLE_BYTES
        ),
    )


def _tasks(
    problems: Problems, given: Sequence[pb.TaskSpec], retry: RetryPolicy
) -> tuple[TaskSpec, ...]:
    if len(given) > TASKS_PER_RUN:
        return ()
    first: dict[str, int] = {}
    tasks: list[TaskSpec] = []
    for index, task in enumerate(given):
        before = first.setdefault(task.id, index)
        if before != index:
            problems.add(f"tasks[{index}].id", f"{task.id!r} is the id of tasks[{before}] too")
        tasks.append(_task(problems, f"tasks[{index}]", task, retry))
    return _with_reads(problems, tasks)


def _with_reads(problems: Problems, tasks: Sequence[TaskSpec]) -> tuple[TaskSpec, ...]:
    """Return the tasks, each waiting for those whose outputs it reads."""
    makers: dict[str, str] = {}
    for index, task in enumerate(tasks):
        maker = makers.setdefault(task.output.name, task.id) if task.output.name else task.id
        if maker != task.id:
            problems.add(f"tasks[{index}].output.name", f"is the output of task {maker} too")
    done: list[TaskSpec] = []
    for index, task in enumerate(tasks):
        unknown = [name for name in task.reads if name not in makers]
        for name in unknown:
            problems.add(f"tasks[{index}].reads", f"no task has the output {name!r}")
        needed = (*task.depends_on, *(makers[name] for name in task.reads if name in makers))
        done.append(replace(task, depends_on=tuple(dict.fromkeys(needed))))
    return tuple(done)


def _task(problems: Problems, field: str, task: pb.TaskSpec, retry: RetryPolicy) -> TaskSpec:
    if not _TASK_ID.fullmatch(task.id):
        rule = "must be 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit"
        problems.add(f"{field}.id", f"{cut(task.id, TITLE_BYTES)!r}: {rule}")
    if "\0" in task.cwd:
        problems.add(f"{field}.cwd", "has a NUL character")
    adapter = _adapter(problems, f"{field}.adapter", task.adapter, task.agent)
    return TaskSpec(
        id=task.id,
        title=problems.bounded(f"{field}.title", task.title, TITLE_BYTES) or task.id,
        depends_on=tuple(dict.fromkeys(task.depends_on)),
        phase=problems.bounded(f"{field}.phase", task.phase, TITLE_BYTES),
        role=problems.bounded(f"{field}.role", task.role, TITLE_BYTES),
        agent=problems.bounded(f"{field}.agent", task.agent, TITLE_BYTES),
        adapter=adapter,
        model=problems.bounded(f"{field}.model", task.model, TITLE_BYTES),
        skills=tuple(dict.fromkeys(task.skills)),
        read_only=task.read_only,
        reads=_reads(problems, f"{field}.reads", task.reads, adapter),
        verify=task.verify,
        output=_output(problems, f"{field}.output", task.output),
        prompt=problems.bounded(f"{field}.prompt", task.prompt, PROMPT_BYTES),
        command=_command(problems, f"{field}.command", task, adapter),
        cwd=task.cwd,
        env=problems.variables(f"{field}.env", task.env),
        env_from=problems.names(f"{field}.env_from", task.env_from),
        timeout=problems.span(f"{field}.timeout", task.timeout)
        if task.HasField("timeout")
        else None,
        retry=_retry(problems, f"{field}.retry", task.retry) if task.HasField("retry") else retry,
        keep_children=task.keep_children,
    )


def _reads(
    problems: Problems, field: str, names: Sequence[str], adapter: Adapter
) -> tuple[str, ...]:
    if names and adapter is Adapter.COMMAND:
        problems.add(field, "a command is not told what others handed in; use a jsonl worker")
    return tuple(dict.fromkeys(names))


def _with_verdict(task: TaskSpec) -> TaskSpec:
    """Have a task that verifies hand in its verdict, unless it asks for data of its own."""
    hands_in = task.adapter in {Adapter.PI, Adapter.JSONL}
    if not task.verify or task.output.schema_json or not hands_in:
        return task
    return replace(task, output=replace(task.output, schema_json=VERDICT_SCHEMA))


def _output(problems: Problems, field: str, given: pb.OutputSpec) -> OutputSpec:
    if given.name and not _OUTPUT_NAME.fullmatch(given.name):
        rule = "must be a file name of at most 200 letters, digits, '.', '_' and '-'"
        problems.add(f"{field}.name", f"{cut(given.name, TITLE_BYTES)!r}: {rule}")
    schema = ""
    if given.HasField("schema"):
        schema = json.dumps(MessageToDict(given.schema), ensure_ascii=False)
        wrong = schema_problem(schema)
        if wrong:
            problems.add(f"{field}.schema", f"is no JSON Schema: {wrong}")
    return OutputSpec(name=given.name, schema_json=schema)


def _adapter(problems: Problems, field: str, name: str, agent: str) -> Adapter:
    if not name:
        return Adapter.PI if agent else Adapter.COMMAND
    try:
        return Adapter(name)
    except ValueError:
        known = ", ".join(Adapter)
        problems.add(field, f"there is no adapter {cut(name, TITLE_BYTES)!r}; there are {known}")
        return Adapter.COMMAND


def _command(
    problems: Problems, field: str, task: pb.TaskSpec, adapter: Adapter
) -> tuple[str, ...]:
    command = tuple(task.command)
    if command and not command[0]:
        problems.add(field, "names no program")
    elif not command and adapter in _NEEDS_COMMAND and not task.agent:
        problems.add(field, f"required: the program that a {adapter} task runs")
    for index, argument in enumerate(command):
        problems.argument(f"{field}[{index}]", argument)
    if not command and adapter is Adapter.PI and not task.agent:
        return PI_COMMAND
    return command
