"""No content of a file raises, and none is dropped without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.catalog import Severity, Source, agents, skills, teams, workflows
from crewd.catalog.files import Found, Place
from crewd.catalog.findings import MOST

KINDS: Final[dict[str, Callable[[Found], Any]]] = {
    "a.md": agents.parse,
    "a.team.md": teams.parse,
    "a.workflow.md": workflows.parse,
    "a/SKILL.md": skills.parse,
}
WORDS: Final = st.sampled_from(
    [
        *("---", "\n", "\n", "\n", "name", "tools", "roles", "skills", "command", "role", "model"),
        *("dependsOn", "output", "reads", ": ", ": ", ":", "- ", "## ", "# ", "a", "b", "false"),
        *(
            "true",
            "[",
            "]",
            "{",
            "}",
            '"',
            "'",
            "&x ",
            "*x",
            "!!python/object:os.system ",
            "|",
            ">",
        ),
        *("```", "~~~", ",", "=", "agent=", "  ", "\t", "\0", "\x85", "\u2028", "\ufeff", "?", "%"),
        *("@", "1", "-1", "1e9", "2020-01-01", "<<: ", "é", "\U0001f600", "...", "\r", "{goal}"),
    ]
)
TEXTS: Final = st.lists(WORDS, max_size=40).map("".join)
HEADS: Final = st.builds("---\n{}\n---\n{}".format, TEXTS, TEXTS)


def outcome(name: str, text: str, *, foreign: bool = False) -> tuple[object, list[Any]]:
    place = Place(Path("/p"), Source.PROJECT, Path("/p"), foreign=foreign)
    item, problems = KINDS[name](Found(Path("/p") / name, place, text))
    return item, problems


@pytest.mark.parametrize("name", KINDS)
@given(text=st.one_of(TEXTS, HEADS, st.text(max_size=200)))
def test_any_text_gives_a_thing_or_a_problem(name: str, text: str) -> None:
    for foreign in (False, True):
        item, problems = outcome(name, text, foreign=foreign)
        is_off = "disabled" in text or "enabled" in text
        errors = [p for p in problems if p.severity is Severity.ERROR]
        assert (item is None) == bool(errors) or is_off
        assert all(problem.line >= 1 and problem.message for problem in problems)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "head",
    [
        "a: " + "[" * 20_000,
        "a: " + "{a: " * 5_000,
        "- " * 10_000,
        "? " * 10_000,
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "a: !!python/object/apply:os.system ['true']",
        "a: " + "x" * 200_000,
        "a: 1\n---\nb: 2",
        "%YAML 9.9\n---\na: 1",
        "a: 0x" + "f" * 30_000,
        "maxTurns: " + "9" * 5_000,
        "key with spaces: 1\n: 2\n? [a]\n: 3",
        "\t- a",
        "a: \ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_hostile_front_matter_is_a_problem_and_not_a_crash(name: str, head: str) -> None:
    _, problems = outcome(name, f"---\n{head}\n---\n## a\nrole: b\n\nx\n")
    assert problems


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "body",
    [
        "## " + " " * 200_000 + "x",
        "- a" + " " * 200_000 + "b",
        "# " * 100_000,
        "## a\nrole: b\n\n" * 15_000,
        "## a\nrol: b\n\n" * 15_000,
        "- a b\n" * 40_000,
        "- a: " + "agent=b " * 400 + "\n",
        "- a: " + "agent=b " * 30_000,
        "- a: skills=" + "a , " * 50_000,
        "`" * 200_000,
        "~~~\n" * 50_000,
        "## a\nrole: b\n" + "- x\n" * 50_000,
        "## a\nrole: b\n" + "x: y\n" * 50_000,
    ],
)
@pytest.mark.timeout(10)
def test_odd_bodies_take_no_more_time_than_their_length(name: str, body: str) -> None:
    _, problems = outcome(name, f"---\nname: a\ndescription: d\n---\n{body}")
    assert len(problems) <= MOST + 2
