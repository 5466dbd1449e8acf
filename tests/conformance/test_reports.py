from __future__ import annotations

import json
from pathlib import Path

from tests.conformance.reports import Report, Result, State, beside_go, from_go, from_junit

PYTEST = """<testsuites><testsuite>
<testcase name="test_scenario[a/fine]"/>
<testcase name="test_scenario[a/skips]"><skipped message="not here"/></testcase>
<testcase name="test_scenario[a/fails]"><failure message="step 1: no">trace</failure></testcase>
<testcase name="test_scenario[a/ends]"><error>the stage</error></testcase>
</testsuite></testsuites>"""
NODE = """<testsuites>
<testcase name="b/fine"/>
<testcase name="b/fails"><failure message="1 &amp;lt; 2"/></testcase>
</testsuites>"""
GO = [
    {"Action": "run", "Test": "TestConformance/c/fine"},
    {"Action": "pass", "Test": "TestConformance/c/fine"},
    {"Action": "skip", "Test": "TestConformance/c/skips"},
    {"Action": "output", "Test": "TestConformance/c/fails", "Output": "step 1: no\n"},
    {"Action": "fail", "Test": "TestConformance/c/fails"},
    {"Action": "output", "Test": "TestConformance", "Output": "the stage: exit status 3\n"},
    {"Action": "fail", "Test": "TestConformance"},
    {"Action": "output", "Output": "FAIL\n"},
]


def test_junit_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "xml").write_text(PYTEST)
    assert from_junit(tmp_path / "xml") == {
        "a/fine": Result(State.OK),
        "a/skips": Result(State.SKIPPED),
        "a/fails": Result(State.FAILED, "step 1: no"),
        "a/ends": Result(State.FAILED, "the stage"),
    }


def test_junit_of_node(tmp_path: Path) -> None:
    (tmp_path / "xml").write_text(NODE)
    failed = Result(State.FAILED, "1 < 2")
    assert from_junit(tmp_path / "xml") == {"b/fine": Result(State.OK), "b/fails": failed}


def test_a_runner_that_wrote_nothing_reported_nothing(tmp_path: Path) -> None:
    assert from_junit(tmp_path / "xml") == {}
    (tmp_path / "xml").touch()
    assert from_junit(tmp_path / "xml") == {}


def test_the_json_of_go() -> None:
    said = "\n".join(["from the compiler", *map(json.dumps, GO)])
    assert from_go(said) == {
        "c/fine": Result(State.OK),
        "c/skips": Result(State.SKIPPED),
        "c/fails": Result(State.FAILED, "step 1: no\n"),
    }
    assert beside_go(said) == "from the compiler\nFAIL\nthe stage: exit status 3\n"


def test_what_is_not_reported_is_missing_unless_there_is_no_runner() -> None:
    assert Report().of("a/b").state is State.MISSING
    assert Report(absent="no go").of("a/b").state is State.ABSENT
