from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from crewd_client.commands import run_file
from crewd_client.commands.exits import Refusal
from crewd_client.commands.run_file import load_run_file, parse_run_file
from crewd_client.v1.spec_pb2 import FAILURE_MODE_CONTINUE

EXAMPLE = """\
goal: "measure and report"
tasks:
  - {id: build, command: [make, all]}
  - {id: test, command: [make, test], depends_on: [build], retry: {max_attempts: 3, backoff: 1s}}
  - {id: report, adapter: jsonl, command: [./report.py], depends_on: [test]}
limits: {max_concurrent_workers: 8}
failure_mode: continue
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(Refusal) as raised:
        parse_run_file(text, "run.yaml")
    assert raised.value.code == 2
    return raised.value.message.splitlines()[1:]


def test_the_example_of_the_contract_is_understood() -> None:
    spec = parse_run_file(EXAMPLE, "run.yaml").spec

    assert [task.id for task in spec.tasks] == ["build", "test", "report"]
    assert spec.tasks[1].retry.backoff.ToTimedelta() == timedelta(seconds=1)
    assert spec.limits.max_concurrent_workers == 8
    assert spec.failure_mode == FAILURE_MODE_CONTINUE


def test_what_looks_like_another_type_is_text_where_text_is_expected() -> None:
    text = (
        "tasks: [{id: a, command: [sleep, 1.10, true, yes, 010, 2020-01-01, 12:30], env: {N: 1}}]"
    )

    task = parse_run_file(text, "run.yaml").spec.tasks[0]

    assert list(task.command) == ["sleep", "1.10", "true", "yes", "010", "2020-01-01", "12:30"]
    assert task.env["N"] == "1"


def test_all_problems_are_listed_with_their_lines() -> None:
    text = """\
gaol: "g"
tasks:
  - {id: build, command: [make], timeout: ages}
  - {id: build, comand: [make], depends_on: [biuld]}
  - id: Report
    command: [report, ~]
    retry:
      max_attempts: three
  - {command: echo hi}
failure_mode: later
failure_mode: continue
"""

    assert problems_of(text) == [
        "run.yaml:1: unknown key 'gaol', did you mean 'goal'?",
        "run.yaml:3: tasks[0].timeout: 'ages' is no duration: write e.g. 30s, 1.5s, 2m or 1h30m",
        "run.yaml:4: unknown key 'comand', did you mean 'command'?",
        "run.yaml:4: the id 'build' is taken by task 1 of the list",
        "run.yaml:4: task 'build' has no 'command'",
        "run.yaml:4: there is no task 'biuld', did you mean 'build'?",
        "run.yaml:5: 'Report' is no id: a-z, 0-9, _ and -, at most 64, not beginning with _ or -",
        "run.yaml:6: tasks[2].command[1]: text is expected, not nothing",
        "run.yaml:8: tasks[2].retry.max_attempts: a number is expected, not text",
        "run.yaml:9: tasks[3].command: a list is expected, not text",
        "run.yaml:9: 'id' is required",
        "run.yaml:10: failure_mode: 'later' is none of fail_fast, continue",
        "run.yaml:11: 'failure_mode' is there twice, first on line 10",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "run.yaml:1: 'tasks' is required, or a 'team', 'workflow' or 'agent'"),
        (
            "goal: g\ntasks: []",
            "run.yaml:2: 'tasks' is required, or a 'team', 'workflow' or 'agent'",
        ),
        ("- a", "run.yaml:1: a mapping is expected, not a list"),
        ("goal: [\n", "run.yaml:2: did not find expected node content"),
        (
            "tasks: [{id: a, command: [x], depends_on: [a]}]",
            "run.yaml:1: 'a' depends on itself",
        ),
    ],
)
def test_a_file_that_is_no_run_is_told_so(text: str, problem: str) -> None:
    assert problems_of(text) == [problem]


def test_a_scaffold_needs_no_command() -> None:
    spec = parse_run_file("tasks: [{id: a, adapter: scaffold}]", "run.yaml").spec

    assert not spec.tasks[0].command


def test_more_tasks_than_a_run_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_file.MAX_TASKS == 10_000
    monkeypatch.setattr(run_file, "MAX_TASKS", 2)
    text = "tasks:\n" + "".join(f"- {{id: t{i}, command: [x]}}\n" for i in range(3))

    assert problems_of(text) == ["run.yaml:4: 3 tasks are too many: at most 2"]


def test_an_alias_within_itself_ends() -> None:
    with pytest.raises(Refusal, match="refers to itself"):
        parse_run_file("labels: &a [*a]", "run.yaml")


def test_the_daemon_s_field_names_lead_to_lines() -> None:
    file = parse_run_file(EXAMPLE, "run.yaml")

    assert file.place_of_field("spec.tasks[1].command") == "run.yaml:4"
    assert file.place_of_field("spec.tasks[2].cwd") == "run.yaml:5"
    assert file.place_of_field("spec.limits.max_tasks") == "run.yaml:6"
    assert file.place_of_field("request_id") is None


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xff")

    with pytest.raises(Refusal, match="No such file"):
        load_run_file(tmp_path / "missing")
    with pytest.raises(Refusal, match="is not UTF-8"):
        load_run_file(tmp_path / "latin")
