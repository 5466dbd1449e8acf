from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from crewd.core.errors import CrewdError
from crewd.core.spec import Adapter, FailureMode, OnTimeout, OutputSpec, RetryPolicy, RunSpec
from crewd.core.units import seconds
from crewd.core.verdict import VERDICT_SCHEMA
from crewd.rpc.spec import Staffed, checked_spec
from crewd.v1 import ask_pb2, spec_pb2
from crewd.v1.run_service_pb2 import CreateRunRequest
from tests.rpc.requests import a_request, a_task

WRONG = {
    "failure_mode",
    "retry.jitter",
    "retry.max_backoff",
    "limits.max_turns",
    "limits.max_tasks",
    "limits.max_duration",
    "tasks[0].id",
    "tasks[1].adapter",
    "tasks[1].env",
    "tasks[1].env_from",
    "tasks[1].command[0]",
    "tasks[2].id",
    "tasks[2].timeout",
    "tasks[3].id",
    "tasks[3].command",
}
"""What is wrong with the worst request of these tests."""


def checked(request: CreateRunRequest, *, daemon_path: str) -> RunSpec:
    return checked_spec(
        request, daemon_path=daemon_path, staff=lambda spec, _given: Staffed(spec)
    ).spec


def refused(request: CreateRunRequest) -> CrewdError:
    with pytest.raises(CrewdError) as raised:
        checked(request, daemon_path="/usr/bin:/bin")
    return raised.value


def fields(error: CrewdError) -> list[str]:
    return [violation.field for violation in error.violations]


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    spec = checked(a_request(tmp_path / "sub" / "."), daemon_path="/bin")
    (task,) = spec.tasks
    assert (spec.title, spec.failure_mode) == ("measure", FailureMode.FAIL_FAST)
    assert (spec.cwd, spec.project_root) == (str(tmp_path / "sub"), str(tmp_path))
    assert (spec.limits.max_concurrent_workers, spec.limits.max_tasks) == (4, 10_000)
    assert (spec.path, spec.retry) == ("/usr/bin:/bin", RetryPolicy())
    assert (task.title, task.adapter, task.executable) == (
        "build",
        Adapter.COMMAND,
        "/usr/bin/true",
    )
    assert task.cwd == spec.cwd


def test_a_run_without_a_goal_is_named_by_its_first_task(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    request.spec.goal = " \n"
    assert checked(request, daemon_path="").title == "build"


def test_what_is_given_is_kept(tmp_path: Path) -> None:
    request = a_request(tmp_path, a_task("build"), a_task("test", needs=["build", "build"]))
    spec = request.spec
    spec.retry.max_attempts = 7
    spec.retry.backoff.seconds = 90
    spec.tasks[1].retry.jitter = 0
    spec.tasks[1].timeout.nanos = 1_500_000
    spec.tasks[1].env["A_1"] = "b"
    spec.asks.on_timeout = ask_pb2.ON_TIMEOUT_DECLINE
    spec.limits.max_tokens = 5
    request.env.vars["C"] = "d"
    got = checked(request, daemon_path="")
    build, test = got.tasks
    assert build.retry == RetryPolicy(max_attempts=7, backoff=seconds(90), max_backoff=seconds(90))
    assert test.retry == RetryPolicy(jitter=0.0)
    assert (test.timeout, test.env, test.depends_on) == (1500, {"A_1": "b"}, ("build",))
    assert (got.asks.on_timeout, got.limits.max_tokens) == (OnTimeout.DECLINE, 5)
    assert got.env == {"C": "d"}


def test_all_problems_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    request = a_request(tmp_path, a_task("Build!"), a_task("b"), a_task("b"), spec_pb2.TaskSpec())
    spec = request.spec
    spec.failure_mode = 77  # type: ignore[assignment]
    spec.retry.jitter = 1.5
    spec.retry.max_backoff.nanos = 1
    spec.limits.max_turns = -1
    spec.limits.max_tasks = 2
    spec.limits.max_duration.CopyFrom(Duration())
    spec.tasks[1].adapter = "telepathy"
    spec.tasks[1].env["A-B"] = "x"
    spec.tasks[1].env_from.append("")
    spec.tasks[1].command[0] = "a\0b"
    spec.tasks[2].timeout.seconds = -5
    error = refused(request)
    assert error.reason == "SPEC_INVALID"
    assert set(fields(error)) == WRONG


@pytest.mark.parametrize(
    ("field", "limit"),
    [("goal", 1024 * 1024), ("title", 200), ("tasks[0].prompt", 1024 * 1024), ("tasks", 10_000)],
)
def test_what_is_too_large_names_its_limit(tmp_path: Path, field: str, limit: int) -> None:
    request = a_request(tmp_path)
    match field:
        case "goal":
            request.spec.goal = "x" * (limit + 1)
        case "title":
            request.spec.title = "ü" * 101
        case "tasks":
            request.spec.tasks.extend([a_task("t")] * limit)
        case _:
            request.spec.tasks[0].prompt = "x" * (limit + 1)
    error = refused(request)
    assert (error.reason, error.metadata["field"]) == ("REQUEST_TOO_LARGE", field)
    assert error.metadata["limit"] == str(limit)


def test_a_run_needs_a_task(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    del request.spec.tasks[:]
    assert fields(refused(request)) == ["tasks"]


@pytest.mark.parametrize("cwd", ["", "relative", "/no/such/folder", "/etc/passwd"])
def test_a_run_needs_a_directory(tmp_path: Path, cwd: str) -> None:
    request = a_request(tmp_path)
    request.spec.workspace.cwd = cwd
    error = refused(request)
    assert (error.reason, error.metadata["cwd"]) == ("CWD_INVALID", cwd)
    assert fields(error) == ["workspace.cwd"]


def test_the_graph_is_checked(tmp_path: Path) -> None:
    circle = a_request(tmp_path, a_task("a", needs=["b"]), a_task("b", needs=["a"]))
    alone = a_request(tmp_path, a_task("a", needs=["a"]))
    unknown = a_request(tmp_path, a_task("a", needs=["z"]))
    assert refused(circle).metadata["path"] == "a -> b -> a"
    assert refused(alone).reason == "GRAPH_CYCLE"
    assert refused(unknown).reason == "GRAPH_UNKNOWN_TASK"


def test_a_program_that_is_not_there_names_the_path_searched(tmp_path: Path) -> None:
    request = a_request(tmp_path, a_task("a"), a_task("b", command="no-such-program"))
    error = refused(request)
    assert error.reason == "WORKER_NOT_FOUND"
    assert error.metadata == {
        "task_id": "b",
        "command": "no-such-program",
        "path": "/usr/bin:/bin",
    }


def test_an_agent_that_is_not_there_comes_with_the_command_that_installs_it(
    tmp_path: Path,
) -> None:
    error = refused(a_request(tmp_path, a_task("a", command="pi")))
    assert error.violations[0].description == (
        "no program 'pi' in PATH '/usr/bin:/bin'; "
        "to install it: npm install -g @earendil-works/pi-coding-agent"
    )


def test_a_program_with_a_slash_is_looked_for_in_the_tasks_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    program = tmp_path / "sub" / "run.sh"
    program.write_text("#!/bin/sh\n")
    request = a_request(tmp_path, a_task("a", command="./run.sh"))
    request.spec.tasks[0].cwd = "sub"
    assert refused(request).reason == "WORKER_NOT_FOUND"
    program.chmod(0o700)
    (task,) = checked(request, daemon_path="").tasks
    assert (task.executable, task.cwd) == (str(program), str(tmp_path / "sub"))


def test_a_program_that_an_earlier_task_may_make_is_not_missed(tmp_path: Path) -> None:
    made = a_task("b", command="./made", needs=["a"])
    spec = checked(a_request(tmp_path, a_task("a"), made), daemon_path="")
    assert spec.tasks[1].executable == str(tmp_path / "made")


def test_an_adapter_that_starts_nothing_needs_no_program(tmp_path: Path) -> None:
    scaffold = spec_pb2.TaskSpec(id="a", adapter="scaffold")
    (task,) = checked(a_request(tmp_path, scaffold), daemon_path="").tasks
    assert (task.adapter, task.executable) == (Adapter.SCAFFOLD, "")


def test_a_task_waits_for_those_whose_outputs_it_reads(tmp_path: Path) -> None:
    plan, build = a_task("plan"), a_task("build")
    plan.output.name = "plan.md"
    build.adapter = "jsonl"
    build.reads.append("plan.md")

    spec = checked(a_request(tmp_path, build, plan), daemon_path="")

    assert [task.depends_on for task in spec.tasks] == [("plan",), ()]
    assert spec.tasks[1].output == OutputSpec(name="plan.md")


def test_what_a_task_must_hand_in_is_a_schema_of_its_own(tmp_path: Path) -> None:
    given = a_task("a")
    given.output.schema.update({"type": "object", "required": ["count"]})

    (task,) = checked(a_request(tmp_path, given), daemon_path="").tasks

    assert json.loads(task.output.schema_json) == {"type": "object", "required": ["count"]}


def test_outputs_that_cannot_be_are_refused_by_field(tmp_path: Path) -> None:
    bad, reader = a_task("a"), a_task("b")
    bad.output.name = "../plan.md"
    bad.output.schema.update({"type": "no such type"})
    reader.adapter = "jsonl"
    reader.reads.append("nobody.md")

    assert fields(refused(a_request(tmp_path, bad, reader))) == [
        "tasks[0].output.name",
        "tasks[0].output.schema",
        "tasks[1].reads",
    ]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"team": "default"}, ["team"]),
        ({"agent": "a", "workflow": "w"}, ["workflow", "agent"]),
    ],
)
def test_what_a_run_is_made_from_is_said_once(
    tmp_path: Path, changes: dict[str, str], wrong: list[str]
) -> None:
    request = a_request(tmp_path)
    request.spec.MergeFrom(spec_pb2.RunSpec(**changes))  # type: ignore[arg-type]

    assert fields(refused(request)) == wrong


def test_a_team_needs_a_goal(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    del request.spec.tasks[:]
    request.spec.team, request.spec.goal = "default", " "

    assert fields(refused(request)) == ["goal"]


def test_a_command_cannot_read_what_it_is_not_told(tmp_path: Path) -> None:
    plan, build = a_task("plan"), a_task("build")
    plan.output.name = "plan.md"
    build.reads.append("plan.md")

    assert fields(refused(a_request(tmp_path, plan, build))) == ["tasks[1].reads"]


def test_an_agent_that_verifies_hands_in_a_verdict(tmp_path: Path) -> None:
    check, own = a_task("check"), a_task("own")
    for task in (check, own):
        task.adapter, task.verify = "jsonl", True
    own.output.schema.update({"type": "array"})

    spec = checked(a_request(tmp_path, check, own), daemon_path="")

    assert spec.tasks[0].output.schema_json == VERDICT_SCHEMA
    assert json.loads(spec.tasks[1].output.schema_json) == {"type": "array"}
