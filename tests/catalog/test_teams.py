from __future__ import annotations

import pytest

from crewd.catalog import Role, Team
from tests.catalog.places import Places

HEAD = "---\nname: t\ndescription: d\n---\n"


def team(places: Places) -> Team:
    return places.load().teams["t"]


LISTED = """\
---
description: d
roles:
  - explorer
  - "build: agent=executor model=x/y"
  - {name: check, agent: verifier, skills: [safe-bash], thinking: low}
---
- write: agent=writer skills=false Writes it down
"""


def test_roles_are_lines_or_a_list_in_the_front_matter(places: Places) -> None:
    places.team("t", LISTED)
    explorer, build, check, write = team(places).roles
    assert explorer == Role(name="explorer", agent="explorer", line=4)
    assert (build.name, build.agent, build.agent_named, build.model) == (
        "build",
        "executor",
        True,
        "x/y",
    )
    assert (check.agent, check.skills, check.thinking) == ("verifier", ("safe-bash",), "low")
    assert (write.agent, write.default_skills, write.skills) == ("writer", False, ())
    assert (write.description, write.line) == ("Writes it down", 8)


def test_only_bullets_below_a_heading_roles_are_roles_if_there_is_one(places: Places) -> None:
    body = "- planner\n\n## Roles\n- explorer\n```\n- critic\n```\n## Notes\n- writer\n"
    places.team("t", HEAD + body)
    assert [role.name for role in team(places).roles] == ["explorer"]
    assert places.problems() == []


def test_prose_is_no_role_and_that_is_told(places: Places) -> None:
    places.team("t", f"{HEAD}- explorer\n- Remember to test\n- Note: be kind\n")
    assert [role.name for role in team(places).roles] == ["explorer"]
    assert places.problems() == [
        "t.team.md:6: warning: '- Remember to test' is no role; it was left out",
        "t.team.md:7: warning: 'Note' is no role: no agent is called so; it was left out",
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("- x: agent=nobody", "role x: there is no agent nobody"),
        ("- explorer\n- explorer", "the role explorer is there twice, first in line 5"),
        ("- explorer: thinking=hihg", "role explorer: thinking 'hihg' is none of "),
        ("- explorer: skills=../x", "role explorer: '../x' is no name of a skill"),
        ("only words", "the team has no roles"),
        ("- Nothing", "the team has no roles"),
    ],
)
def test_a_team_that_cannot_work_is_left_out(places: Places, body: str, message: str) -> None:
    places.team("t", HEAD + body)
    assert "t" not in places.load().teams
    assert places.errors()[0].message.startswith(message)


def test_a_misspelt_key_of_a_role_is_told(places: Places) -> None:
    places.team("t", f"{HEAD}- explorer: modle=x/y Looks")
    assert [(p.message, p.fix) for p in places.load().problems] == [
        ("role explorer: unknown key 'modle'", "did you mean 'model'?")
    ]


def test_its_workflow_must_be_there_and_find_its_roles(places: Places) -> None:
    places.team("t", "---\nname: t\nworkflow: defualt\n---\n- explorer")
    places.team("u", "---\nname: u\nworkflow: fast-fix\n---\n- explorer\n- verifier")
    assert [(p.message, p.fix) for p in places.errors()] == [
        ("the team's workflow 'defualt' is not there", "did you mean 'default'?"),
        (
            "it has no role executor, which step execute of fast-fix needs",
            "add it: - executor: agent=NAME",
        ),
    ]


def test_a_project_may_lower_the_number_of_workers_and_not_raise_it(places: Places) -> None:
    places.team("t", "---\nname: t\nmaxConcurrency: 1\n---\n- explorer")
    places.team("u", "---\nname: u\nmax_concurrency: 64\n---\n- explorer")
    text = "---\nname: mine\nmaxConcurrency: 64\n---\n- explorer"
    places.write(places.config / "teams" / "mine.team.md", text)
    teams = places.load().teams
    assert [teams[name].max_concurrent_workers for name in ("t", "u", "mine")] == [1, 4, 64]
    assert places.problems() == [
        "u.team.md:3: warning: a project's file may not go above 4; 4 it is"
    ]


def test_a_team_may_lie_in_the_project_s_folder_itself(places: Places) -> None:
    places.write(places.project / ".crew" / "t.team.md", f"{HEAD}- explorer")
    assert team(places).roles[0].agent == "explorer"


def test_what_a_role_line_says_that_means_nothing_is_told(places: Places) -> None:
    places.team("t", "---\nname: t\n---\n- explorer: agent=explorer tools=read looks\n")

    (problem,) = places.problems()

    assert problem.startswith("t.team.md:4: warning: role explorer: unknown key 'tools'")


def test_a_file_whose_name_does_not_say_that_it_is_a_team_is_told(places: Places) -> None:
    file = places.team("t", "---\nname: t\n---\n- explorer: looks\n")
    file.rename(file.with_name("other.md"))

    assert places.problems() == [
        "other.md:1: warning: is not read: its name does not say what it is"
    ]
