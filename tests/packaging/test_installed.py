"""What is released works away from the repository, with the oldest and the newest of what it needs.

`newest` is what pip takes today, `floors` is the oldest version of each dependency that the two
projects declare to do.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

import crewd
from tests.packaging.index import PATIENCE, Venv
from tests.packaging.installation import Installation, in_use
from tests.packaging.projects import CLIENT, DAEMON, PROJECTS

pytestmark = pytest.mark.timeout(PATIENCE)
SECRET = "planted-secret-1234"  # noqa: S105  # it is looked for
ASKS = r"""
read -r task
echo '{"type": "ask", "id": "1", "question": "Where?", "options": ["here", "there"]}'
read -r answer
case $answer in *there*) place=there ;; *) place=here ;; esac
echo '{"type": "result", "outcome": "completed", "text": "found", "data": {"place": "'$place'"}}'
"""
RUN = """
goal: try an installation
tasks:
- id: ask
  adapter: jsonl
  command: [sh, ask.sh]
  output:
    schema: {type: object, required: [place], properties: {place: {enum: [here]}}}
- id: leak
  command: [sh, -c, 'echo "the token is $DEPLOY_TOKEN"']
  env: {DEPLOY_TOKEN: SECRET}
  depends_on: [ask]
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
for package in sys.argv[1:]:
    found = importlib.import_module(package)
    for each in pkgutil.walk_packages(found.__path__, package + "."):
        importlib.import_module(each.name)
        print(each.name)
"""


@pytest.fixture(scope="module", params=["newest", "floors"])
def installation(
    request: pytest.FixtureRequest,
    index: None,
    daemon_wheel: Path,
    client_wheel: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Installation]:
    del index
    venv = Venv(tmp_path_factory.mktemp(request.param))
    oldest = {name: floor for project in PROJECTS for name, floor in project.floors().items()}
    oldest.pop(CLIENT.name)
    pins = [f"{name}=={floor}" for name, floor in oldest.items()]
    venv.install(
        daemon_wheel, client_wheel, *(["--no-compile", *pins] if request.param == "floors" else [])
    )
    with in_use(venv) as installation:
        (installation.home / "ask.sh").write_text(ASKS)
        (installation.home / "run.yaml").write_text(RUN.replace("SECRET", SECRET))
        yield installation


def run_and_answer(installation: Installation, choice: str, *, code: int) -> str:
    """Start the run, answer its question, wait for its end; return its id."""
    run_id = installation.run("crew", "run", "--file", "run.yaml", "--detach").strip()
    with installation.started("crew", "watch", run_id, "--json", code=code) as watch:
        assert watch.stdout is not None
        events = map(json.loads, watch.stdout)
        asked = next(event for event in events if event.get("kind") == "ask_opened")
        installation.run("crew", "answer", asked["data"]["ask"]["id"], choice)
        assert "run" in list(events)[-1]
    return run_id


def test_both_projects_declare_the_same_floors() -> None:
    both = DAEMON.floors().keys() & CLIENT.floors().keys()
    assert {each: DAEMON.floors()[each] for each in both} == {
        each: CLIENT.floors()[each] for each in both
    }


def test_every_dependency_has_a_floor() -> None:
    assert [len(p.floors()) for p in PROJECTS] == [
        len(p.declared["dependencies"]) for p in PROJECTS
    ]


def test_the_commands_tell_their_version(installation: Installation) -> None:
    assert installation.run("crewd", "--version") == f"crewd {crewd.__version__}\n"
    assert installation.run("crew", "--version") == f"crew {crewd.__version__}\n"


def test_every_module_can_be_imported_without_a_warning(installation: Installation) -> None:
    imported = installation.run("python", "-W", "error", "-c", IMPORT_ALL, "crewd", "crewd_client")
    modules = set(imported.split())
    files = {Path(name) for project in PROJECTS for name in project.files()}
    wanted = {path.with_suffix("") for path in files if path.suffix == ".py"}
    dotted = {".".join(path.parts).removesuffix(".__init__") for path in wanted}
    assert dotted - modules == {"crewd", "crewd_client"}


def test_a_run_asks_ends_and_keeps_its_secrets(installation: Installation) -> None:
    run_id = run_and_answer(installation, "here", code=0)
    (shown,) = installation.told("crew", "show", run_id)
    assert [task["status"] for task in shown["tasks"]] == ["completed", "completed"]
    assert json.loads(shown["tasks"][0]["result"]["data_json"]) == {"place": "here"}
    assert installation.run("crew", "logs", run_id, "leak") == "the token is ***\n"


def test_data_is_held_against_its_schema(installation: Installation) -> None:
    run_id = run_and_answer(installation, "there", code=3)
    (shown,) = installation.told("crew", "show", run_id)
    assert '"there" is not one of "here"' in shown["tasks"][0]["status_message"]


def test_the_catalog_is_the_one_of_the_repository(installation: Installation) -> None:
    builtin = DAEMON.package / "catalog" / "builtin"
    for kind, pattern, suffix in (
        ("agents", "*.md", ".md"),
        ("teams", "*.md", ".team.md"),
        ("workflows", "*.md", ".workflow.md"),
        ("skills", "*", ""),
    ):
        files = {path.name.removesuffix(suffix) for path in (builtin / kind).glob(pattern)}
        assert {each["name"] for each in installation.told("crew", kind)} == files
    installation.run("crew", "validate")


def test_the_daemon_answers_a_bare_call_and_a_plain_look(installation: Installation) -> None:
    answer = json.loads(installation.run("crew", "call", "DaemonService/GetServerInfo"))
    assert answer["server"]["version"] == crewd.__version__
    assert installation.run("crewd", "status").startswith("serving")


def test_the_doctor_finds_nothing_wrong(installation: Installation) -> None:
    findings = installation.told("crewd", "doctor", "--deep")
    wrong = [each for each in findings if each["severity"] not in {"ok", "info"}]
    assert wrong == []


def test_a_daemon_tells_that_it_was_upgraded(installation: Installation) -> None:
    assert "restart needed" not in installation.run("crewd", "status")
    (first,) = installation.venv.bin.parent.glob("lib/python3*/site-packages/crewd/__init__.py")
    text = first.read_bytes()
    first.unlink()
    first.write_bytes(text)

    assert "restart needed" in installation.run("crewd", "status")


def test_what_is_installed_is_what_was_to_be_tried(
    installation: Installation, request: pytest.FixtureRequest
) -> None:
    floors = {**CLIENT.floors(), **DAEMON.floors()}
    has = {name: installation.versions[name.lower()] for name in floors}
    at_floor = {n for n, v in has.items() if v.removesuffix(".0") == floors[n].removesuffix(".0")}
    if request.node.callspec.params["installation"] == "floors":
        assert at_floor == set(floors)
    else:
        assert at_floor < set(floors)
