from __future__ import annotations

from pathlib import Path

import pytest

from crewd.catalog import trust
from crewd.core.errors import CrewdError, Reason
from crewd.core.spec import Adapter, RunSpec
from crewd.rpc.spec import checked_spec
from crewd.rpc.staffing import Staffing
from crewd.v1 import spec_pb2
from crewd.v1.run_service_pb2 import CreateRunRequest
from tests.rpc.requests import a_request, a_task

AGENT = "---\nname: scribe\nmodel: acme/large\ntools: read, write\n---\nYou write.\n"
STARTER = "---\nname: starter\nadapter: jsonl\ncommand: [sh, -c, 'true']\n---\nYou start.\n"


class Place:
    """A project with a `.crew` folder, a home without anything, and a `pi` on the PATH."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        self.config = self.home / ".config" / "crewd"
        self.bin = root / "bin"
        for folder in (self.project / ".crew" / "agents", self.home, self.bin):
            folder.mkdir(parents=True)
        (self.bin / "pi").write_text("#!/bin/sh\n")
        (self.bin / "pi").chmod(0o755)

    def agent(self, name: str, text: str) -> None:
        (self.project / ".crew" / "agents" / f"{name}.md").write_text(text)

    def staffed(self, request: CreateRunRequest) -> RunSpec:
        request.env.path = f"{self.bin}:/usr/bin:/bin"
        return checked_spec(request, daemon_path="", staff=Staffing(self.home, self.config)).spec

    def refused(self, request: CreateRunRequest) -> CrewdError:
        with pytest.raises(CrewdError) as raised:
            self.staffed(request)
        return raised.value

    def run_of(self, **named: str) -> CreateRunRequest:
        request = a_request(self.project)
        del request.spec.tasks[:]
        request.spec.MergeFrom(spec_pb2.RunSpec(goal="add a greeting", **named))  # type: ignore[arg-type]
        return request


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_team_becomes_the_tasks_of_its_workflow_frozen_with_agents_and_skills(
    place: Place,
) -> None:
    spec = place.staffed(place.run_of(team="default"))

    assert [task.id for task in spec.tasks] == ["explore", "plan", "execute", "verify"]
    assert [task.depends_on for task in spec.tasks[:2]] == [(), ("explore",)]
    assert {task.adapter for task in spec.tasks} == {Adapter.PI}
    assert {task.executable for task in spec.tasks} == {str(place.bin / "pi")}
    assert set(spec.agents) == {task.agent for task in spec.tasks}
    assert (spec.team, spec.workflow) == ("default", "default")
    assert spec.tasks[0].read_only
    assert spec.skills
    assert spec.limits.max_concurrent_workers == 2


def test_the_bound_that_is_asked_for_counts_before_the_teams(place: Place) -> None:
    request = place.run_of(team="default")
    request.spec.limits.max_concurrent_workers = 7

    assert place.staffed(request).limits.max_concurrent_workers == 7


def test_an_agent_of_the_project_does_the_goal_alone(place: Place) -> None:
    place.agent("scribe", AGENT)

    spec = place.staffed(place.run_of(agent="scribe"))

    (task,) = spec.tasks
    assert (task.id, task.prompt, task.agent) == ("scribe", "add a greeting", "scribe")
    assert spec.agents["scribe"].model == "acme/large"
    assert spec.agents["scribe"].system_prompt == "You write."


def test_a_task_of_its_own_may_name_an_agent(place: Place) -> None:
    place.agent("scribe", AGENT)
    task = spec_pb2.TaskSpec(id="t", agent="scribe", prompt="write it", model="acme/small")
    request = place.run_of()
    request.spec.tasks.append(task)

    spec = place.staffed(request)

    assert (spec.tasks[0].adapter, spec.tasks[0].model) == (Adapter.PI, "acme/small")
    assert spec.tasks[0].prompt == "write it"
    assert set(spec.agents) == {"scribe"}


def test_an_agent_that_is_not_there_is_refused_with_the_nearest_name(place: Place) -> None:
    refusal = place.refused(place.run_of(agent="explorr"))

    assert refusal.reason is Reason.AGENT_NOT_FOUND
    assert "did you mean 'explorer'" in refusal.message


def test_a_project_that_would_start_programs_needs_trust_once(place: Place) -> None:
    place.agent("starter", STARTER)

    refusal = place.refused(place.run_of(agent="starter"))

    assert refusal.reason is Reason.NOT_TRUSTED
    assert "starter.md:" in refusal.message
    assert f"crewd trust {place.project}" in refusal.message
    trust(place.config, place.project)
    (task,) = place.staffed(place.run_of(agent="starter")).tasks
    assert (task.adapter, task.command) == (Adapter.JSONL, ("sh", "-c", "true"))


def test_a_run_that_names_nothing_reads_no_file(place: Place) -> None:
    place.agent("broken", "---\n: [\n---\n")

    (task,) = place.staffed(a_request(place.project, a_task("a"))).tasks

    assert task.agent == ""


def test_the_file_a_run_was_written_in_is_told_and_not_read(place: Place) -> None:
    request = a_request(place.project)
    request.file = "/nowhere/run.yaml"

    assert place.staffed(request).file == "/nowhere/run.yaml"
