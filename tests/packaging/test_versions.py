"""One release has one version, wherever it is written down."""

from __future__ import annotations

import json
import re

import pytest

import crewd
import crewd_client
from tests.architecture.sources import ROOT
from tests.architecture.tools import TYPESCRIPT
from tests.packaging.projects import CLIENT, DAEMON, PROJECTS, Project

NAME_AND_VERSION = re.compile(r"\bcrewd-client-\w+/(\d[\w.]*)")


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_a_project_takes_its_version_from_its_code(project: Project) -> None:
    assert project.declared["dynamic"] == ["version"]
    assert "version" not in project.declared


def test_the_daemon_and_its_client_have_the_same_version() -> None:
    assert crewd.__version__ == crewd_client.__version__


def test_the_daemon_takes_the_client_of_its_own_release() -> None:
    assert f"{CLIENT.name}=={crewd.__version__}" in DAEMON.declared["dependencies"]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
@pytest.mark.parametrize("promised", ["grpcio>=1.76", "protobuf>=6.31.1,<8"])
def test_a_project_takes_the_versions_that_it_promises(project: Project, promised: str) -> None:
    """A cap has no test that installs something: it holds off what is not there yet."""
    assert promised in project.declared["dependencies"]


def test_the_typescript_client_has_the_version_too() -> None:
    package = json.loads((TYPESCRIPT / "package.json").read_text())
    lock = json.loads((TYPESCRIPT / "package-lock.json").read_text())
    locked = {lock["version"], lock["packages"][""]["version"]}
    assert {package["version"]} | locked == {crewd.__version__}


@pytest.mark.parametrize("pattern", ["typescript/src/*.ts", "go/*.go"])
def test_a_client_names_itself_with_the_version(pattern: str) -> None:
    texts = [path.read_text() for path in (ROOT / "clients").glob(pattern)]
    named = {version for text in texts for version in NAME_AND_VERSION.findall(text)}
    assert named == {crewd.__version__}


def test_the_changelog_is_open_or_ends_with_this_version() -> None:
    newest = re.search(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] in {"Unreleased", crewd.__version__}
