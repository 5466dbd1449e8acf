from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.errors import CrewdError
from crewd.rpc.checks import Problems
from crewd.workers.environment import DEFAULT_PATH, Environment, MissingVariableError
from crewd.workers.registry import adapter_for
from tests.host.driver import HostUnderTest

DAEMON: Final = {
    "HOME": "/home/ada",
    "USER": "ada",
    "LANG": "C.UTF-8",
    "LC_TIME": "de_DE",
    "PATH": "/usr/bin:.:bin:/bin",
    "TERM": "xterm",
    "LD_PRELOAD": "/opt/spy.so",
    "API_KEY": "from the daemon",
    "CREWD_TOKEN": "the operator's",
}
BASE: Final = {
    "HOME": "/home/ada",
    "USER": "ada",
    "LANG": "C.UTF-8",
    "LC_TIME": "de_DE",
    "TERM": "dumb",
}
CASES: Final[list[Mapping[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "environment.json").read_text()
)


class Desk:
    """Environments of one daemon and one user."""

    def __init__(self, folder: Path, daemon: Mapping[str, str] = DAEMON) -> None:
        self.file = folder / "env"
        self._environment = Environment(daemon, self.file)

    def write(self, text: str) -> None:
        self.file.touch(0o600)
        self.file.write_text(text)

    def build(
        self,
        *,
        path: str = "/bin",
        given: Mapping[str, str] | None = None,
        named: Sequence[str] = (),
        offered: Sequence[str] = (),
        own: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        return self._environment.build(
            path=path, given=given or {}, named=named, own=own or {}, offered=offered
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_worker_gets_the_base_names_the_path_and_nothing_else(desk: Desk) -> None:
    assert desk.build() == {**BASE, "PATH": "/bin"}


@pytest.mark.parametrize(
    ("asked", "given", "path"),
    [
        ("/a:relative::./b:/c", {}, "/a:/c"),
        ("", {}, "/usr/bin:/bin"),
        ("relative", {}, DEFAULT_PATH),
        ("/a", {"PATH": "bin:/b"}, "/b"),
    ],
)
def test_only_absolute_entries_of_a_path_are_kept(
    desk: Desk, asked: str, given: Mapping[str, str], path: str
) -> None:
    assert desk.build(path=asked, given=given)["PATH"] == path


def test_the_spec_may_set_anything_but_what_is_crewds_own(desk: Desk) -> None:
    given = {"LANG": "de", "TERM": "xterm", "LD_PRELOAD": "mine.so", "CREWD_TASK_ID": "other"}
    built = desk.build(given=given, own={"CREWD_TASK_ID": "a", "CREWD_RUN_ID": "run_1"})
    assert built["LD_PRELOAD"] == "mine.so"
    assert (built["LANG"], built["TERM"]) == ("de", "xterm")
    assert (built["CREWD_TASK_ID"], built["CREWD_RUN_ID"]) == ("a", "run_1")


def test_a_named_variable_comes_from_the_file_before_the_daemon(desk: Desk) -> None:
    assert desk.build(named=["API_KEY"])["API_KEY"] == "from the daemon"
    desk.write("API_KEY=filed\n")
    assert desk.build(named=["API_KEY"], given={"API_KEY": "given"})["API_KEY"] == "filed"
    desk.write("API_KEY=changed\n")
    assert desk.build(named=["API_KEY"])["API_KEY"] == "changed"


def test_a_named_variable_that_is_nowhere_is_told_with_the_place_for_it(desk: Desk) -> None:
    with pytest.raises(MissingVariableError, match=f"DEPLOY_KEY, .* {desk.file}; add a line"):
        desk.build(named=["DEPLOY_KEY"])


@pytest.mark.parametrize("name", ["CREWD_TOKEN", "CREWD_TASK_TOKEN"])
def test_what_is_the_daemons_own_cannot_be_had_by_name(desk: Desk, name: str) -> None:
    desk.write("CREWD_TASK_TOKEN=x\n")
    with pytest.raises(MissingVariableError, match=f"{name}: .* the daemon's own"):
        desk.build(named=[name])
    assert name not in desk.build(offered=[name])


def test_an_offered_variable_is_passed_where_it_is_set_and_never_required(desk: Desk) -> None:
    desk.write("FILED=filed\n")
    built = desk.build(offered=["API_KEY", "FILED", "ABSENT"])
    assert built == {**BASE, "PATH": "/bin", "API_KEY": "from the daemon", "FILED": "filed"}
    assert desk.build(offered=["API_KEY"], given={"API_KEY": "given"})["API_KEY"] == "given"


@pytest.mark.parametrize(("text", "mode"), [("KEY\n", 0o600), ("KEY=x\n", 0o644)])
def test_a_file_that_cannot_be_used_is_told_only_to_who_needs_it(
    desk: Desk, text: str, mode: int
) -> None:
    desk.write(text)
    desk.file.chmod(mode)
    assert desk.build() == {**BASE, "PATH": "/bin"}
    for named, offered in ((["API_KEY"], []), ([], ["API_KEY"])):
        with pytest.raises(MissingVariableError, match=str(desk.file)):
            desk.build(named=named, offered=offered)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostUnderTest]:
    host = HostUnderTest(tmp_path / "state")
    host.start()
    yield host
    host.end()


def test_a_worker_of_the_host_sees_what_was_built_its_mark_and_no_more(
    desk: Desk, host: HostUnderTest
) -> None:
    controller = host.controller()
    desk.write("export KEY='two\nlines'\n")
    own = {"CREWD_RUN_ID": "run"}
    built = desk.build(given={"CREWD_ATTEMPT": "forged"}, named=["KEY"], own=own)

    controller.start("run/task/1", "/usr/bin/env", "-0", env=built)
    controller.wait_exit("run/task/1")

    entries = host.spooled("run/task/1").decode().removesuffix("\0").split("\0")
    seen = dict(entry.split("=", 1) for entry in entries)
    mark = f"{host.paths.marker.read_text()}/run/task/1"
    assert seen == {**BASE, "PATH": "/bin", "KEY": "two\nlines", **own, "CREWD_ATTEMPT": mark}


# The cases taken from upstream


def passed(case: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    names, daemon = case["env_from"], case["env"]
    problems = Problems()
    problems.names("env_from", names)
    try:
        problems.refuse()
        built = Desk(folder, daemon).build(path=daemon["PATH"], named=names)
    except CrewdError as error:
        return {"refused": error.violations[0].description}
    except MissingVariableError as error:
        return {"missing": str(error).split(",")[0].removeprefix("env_from names ")}
    assert built.pop("TERM") == "dumb"
    return built


def offered_by_model(case: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    desk, pi = Desk(folder, case["env"]), adapter_for("pi")
    built = [desk.build(offered=pi.variables(model)) for model in case["models"]]
    return {"passed": [sorted(one.keys() - {"PATH", "TERM"}) for one in built]}


AREAS: Final[Mapping[str, Callable[[Mapping[str, Any], Path], Mapping[str, Any]]]] = {
    "env_filter": passed,
    "env.scrub": passed,
    "scoped_allowlist": offered_by_model,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Mapping[str, Any], tmp_path: Path) -> None:
    assert AREAS[case["area"]](case["input"], tmp_path) == case["expect"]
    assert ("decision" in case) is ("upstream_expect" in case)
