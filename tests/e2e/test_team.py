"""A whole crew on a real repository: the real pi, a scripted model, a person at a second desk."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewd_client import watch_asks
from crewd_client.v1.ask_pb2 import ASK_STATUS_OPEN, Ask
from crewd_client.v1.run_pb2 import RUN_STATUS_COMPLETED
from crewd_client.v1.run_service_pb2 import ClientEnv, CreateRunRequest
from crewd_client.v1.spec_pb2 import RunSpec, WorkspaceSpec
from tests.support.daemon import Daemon
from tests.support.desk import PATIENCE, Desk
from tests.support.pi import BIN, configure
from tests.support.pi_desk import needs_pi
from tests.support.scripted_model import ScriptedModel

pytestmark = needs_pi

QUESTION = {"question": "Which greeting?", "options": ["hello", "good day"]}
OWN_CREW = {
    "agents/scout.md": "---\nname: scout\ndescription: looks\ntools: read, grep, ask\n"
    "model: scripted/scripted\n---\nYou look around.\n",
    "agents/smith.md": "---\nname: smith\nmodel: scripted/scripted\n---\nYou make things.\n",
    "teams/forge.team.md": "---\nname: forge\ndefaultWorkflow: forge\nmaxConcurrency: 1\n---\n"
    "- scout: agent=scout looks around\n- smith: agent=smith makes it\n",
    "workflows/forge.workflow.md": "---\nname: forge\n---\n\n## look\nrole: scout\n"
    "output: found.md\n\nLook for the place of: {goal}\n\n## make\nrole: smith\n"
    "dependsOn: look\nreads: found.md\n\nMake it: {goal}\n",
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    by_role = {
        "planner": f"[[ask:{json.dumps(QUESTION)}]]",
        "executor": "[[write:greeting.txt]]",
        "verifier": '[[submit:{"verdict": "pass"}]]',
        "scout": f"[[ask:{json.dumps(QUESTION)}]]",
        "smith": "[[write:greeting.txt]]",
    }
    with ScriptedModel(by_role).serving() as model:
        yield model


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "README.md").write_text("# A project\n")
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "Start"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


async def first_question(desk: Desk) -> Ask:
    async with asyncio.timeout(PATIENCE):
        async for change in watch_asks(desk.client):
            for ask in change.items:
                if ask.status == ASK_STATUS_OPEN:
                    return ask
    raise AssertionError("nobody asked")


def prefer_the_scripted_model(folder: Path) -> None:
    """Have pi use it where no model is named, as its owner would."""
    settings = {"defaultProvider": "scripted", "defaultModel": "scripted"}
    (folder / "settings.json").write_text(json.dumps(settings))


async def submitted(desk: Desk, model: ScriptedModel, repository: Path, spec: RunSpec) -> str:
    spec.goal = "add a greeting"
    spec.workspace.CopyFrom(WorkspaceSpec(cwd=str(repository)))
    variables = configure(desk.root / "pi", model.base_url)
    prefer_the_scripted_model(desk.root / "pi")
    env = ClientEnv(path=f"{BIN}:/usr/bin:/bin", vars=variables)
    created = await desk.client.runs.CreateRun(CreateRunRequest(spec=spec, env=env))
    return created.run.id


async def answered(desk: Desk, run_id: str) -> Ask:
    """Wait for the one question of the run and answer it."""
    ask = await desk.asked(run_id)
    return await desk.answer(ask.id, "hello")


async def test_the_default_team_explores_plans_executes_and_verifies(
    desk: Desk, model: ScriptedModel, repository: Path
) -> None:
    run_id = await submitted(desk, model, repository, RunSpec(team="default"))
    ask = await answered(desk, run_id)
    run = await desk.ended(run_id)

    assert run.status == RUN_STATUS_COMPLETED
    assert (ask.task_id, ask.question) == ("plan", "Which greeting?")
    assert (repository / "greeting.txt").read_text() == "by the scripted model\n"
    assert (run.source.team, run.source.workflow) == ("default", "default")
    plan = await desk.task(run_id, "plan")
    assert "hello" in plan.result.text
    assert "result of task plan" in json.dumps(model.requests)


async def test_a_repository_brings_its_own_crew(
    desk: Desk, model: ScriptedModel, repository: Path
) -> None:
    for name, text in OWN_CREW.items():
        file = repository / ".crew" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    run_id = await submitted(desk, model, repository, RunSpec(team="forge"))
    ask = await answered(desk, run_id)
    run = await desk.ended(run_id)

    assert run.status == RUN_STATUS_COMPLETED
    assert ask.task_id == "look"
    assert (repository / "greeting.txt").exists()
    make = await desk.task(run_id, "make")
    assert (make.agent, make.depends_on[:]) == ("smith", ["look"])


async def test_a_person_at_a_terminal_does_it_with_crew_alone(
    daemon: Daemon, desk: Desk, model: ScriptedModel, repository: Path
) -> None:
    daemon.env.update(configure(desk.root / "pi", model.base_url))
    prefer_the_scripted_model(desk.root / "pi")
    daemon.env["PATH"] = f"{BIN}:{daemon.env['PATH']}"
    await daemon.restart()

    running = asyncio.create_task(
        daemon.crew("run", "add a greeting", "--team", "default", "--cwd", str(repository))
    )
    ask = await first_question(desk)
    listed = await daemon.crew("asks")
    answered = await daemon.crew("answer", ask.id, "hello")
    code, out, err = await running

    assert (code, "Traceback" in err) == (0, False), err
    assert ask.id in listed[1]
    assert answered[0] == 0
    assert out.strip(), "the result is on stdout"
    assert (repository / "greeting.txt").exists()
    shown = await daemon.crew("artifacts", ask.run_id, "plan.md")
    assert (shown[0], "hello" in shown[1]) == (0, True)
