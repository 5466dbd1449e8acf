"""A release holds all that its code reads, and says what it is."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping

import pytest

import crewd
from tests.architecture.sources import ROOT
from tests.packaging.build import Built, build, contents, names
from tests.packaging.projects import CLIENT, DAEMON, PROJECTS, Project

UNITS = {
    path.name: path.read_bytes()
    for path in (ROOT / "systemd").iterdir()
    if path.suffix in {".conf", ".service"}
}
ROOT_FILES = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
LONGEST_PATH = 120


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Build both projects; return what was made by the project's name."""
    place = tmp_path_factory.mktemp("releases")
    return {each.name: build(each, place / each.name) for each in PROJECTS}


@pytest.fixture(params=PROJECTS, ids=lambda project: project.name)
def built(request: pytest.FixtureRequest, releases: Mapping[str, Built]) -> Built:
    project: Project = request.param
    return releases[project.name]


def installed(built: Built) -> dict[str, bytes]:
    """Return what of a wheel becomes modules and their data."""
    return {name: data for name, data in contents(built.wheel).items() if ".dist-info/" not in name}


def test_a_wheel_holds_every_file_of_the_sources_and_nothing_else(built: Built) -> None:
    sources, inside = built.project.files(), installed(built)
    assert inside.keys() == sources.keys()
    assert {name for name, data in sources.items() if inside[name] != data} == set()


def test_the_daemon_brings_its_units(releases: Mapping[str, Built]) -> None:
    files = installed(releases[DAEMON.name])
    brought = {name.rpartition("/")[2]: data for name, data in files.items()}
    assert {name: brought.get(name) for name in UNITS} == UNITS


@pytest.mark.parametrize(
    "pattern",
    [
        r"crewd/catalog/builtin/(agents|teams|workflows)/\S+\.md",
        r"crewd/catalog/builtin/skills/\S+/SKILL\.md",
        r"crewd/store/migrations/0001_\w+\.sql",
        r"crewd/store/queries\.sql",
        r"crewd/workers/pi_extension\.ts",
        r"crewd/v1/run_service_pb2_grpc\.py",
    ],
)
def test_the_daemon_brings_what_it_reads(releases: Mapping[str, Built], pattern: str) -> None:
    assert any(re.fullmatch(pattern, name) for name in contents(releases[DAEMON.name].wheel))


def test_the_client_tells_type_checkers_that_it_is_typed(releases: Mapping[str, Built]) -> None:
    files = contents(releases[CLIENT.name].wheel)
    assert "crewd_client/py.typed" in files
    generated = {name for name in files if re.fullmatch(r"crewd_client/v1/\w+_pb2\.py", name)}
    assert len(generated) == len(list((ROOT / "proto").rglob("*.proto")))
    assert {f"{name}i" for name in generated} <= files.keys()


def test_a_wheel_of_the_sdist_is_the_same(built: Built) -> None:
    assert contents(built.wheel_of_sdist) == contents(built.wheel)


def test_an_sdist_of_the_daemon_holds_the_daemon_alone(releases: Mapping[str, Built]) -> None:
    found = names(releases[DAEMON.name].sdist)
    assert {name for name in found if "/" not in name} == ROOT_FILES
    folders = {name.partition("/")[0] for name in found if "/" in name}
    assert folders <= {"crewd", "proto", "systemd"}
    assert {"proto/crewd.binpb", "proto/crewd/v1/run_service.proto"} <= found


def test_an_sdist_of_the_client_holds_the_client_alone(releases: Mapping[str, Built]) -> None:
    found = names(releases[CLIENT.name].sdist)
    assert {name for name in found if "/" not in name} <= ROOT_FILES
    assert {name.partition("/")[0] for name in found if "/" in name} == {"src"}


def test_nothing_that_machines_leave_behind_is_in_it(built: Built) -> None:
    left = re.compile(r"(^|/)(__pycache__|node_modules|\.venv|\.git|dist|build)/|\.pyc$")
    for found in (names(built.sdist), set(contents(built.wheel))):
        assert {name for name in found if left.search(name) or len(name) > LONGEST_PATH} == set()


def test_it_says_what_it_is(built: Built) -> None:
    told = built.metadata()
    assert (told["Name"], told["Version"]) == (built.project.name, crewd.__version__)
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert told["Summary"].endswith(".")
    assert told["Description-Content-Type"] == "text/markdown"
    assert str(told.get_payload()).startswith(f"# {built.project.name}\n")
    assert "Programming Language :: Python :: 3.11" in told.get_all("Classifier", [])
    assert told.get_all("Project-URL") is None


def test_it_brings_its_licence(built: Built) -> None:
    (text,) = (d for n, d in contents(built.wheel).items() if n.endswith("/licenses/LICENSE"))
    assert text == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("client", ["go", "python", "typescript"])
def test_every_client_has_a_copy_of_the_licence(client: str) -> None:
    """Go and npm publish the one that is in the folder."""
    copy = ROOT / "clients" / client / "LICENSE"
    assert copy.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_it_brings_its_command(built: Built) -> None:
    files = contents(built.wheel)
    (text,) = (data for name, data in files.items() if name.endswith("/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(text.decode())
    package = built.project.package.name
    assert {name: dict(points[name]) for name in points.sections()} == {
        "console_scripts": {built.project.command: f"{package}.cli:main"}
    }
