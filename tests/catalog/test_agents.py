from __future__ import annotations

import os

import pytest

from crewd.catalog import Agent, PlanRequest, Source
from crewd.core.spec import Adapter
from tests.catalog.places import Places

FULL = """\
---
name: builder
description: Builds it
model: acme/big
thinking: high
tools: [read, bash]
excludeTools: bash
skills: safe-bash, house-rules
system_prompt_mode: append
inheritProjectContext: true
max-turns: 7
read_only: false
adapter: jsonl
command: ["./agent", --fast]
envFrom: [ACME_KEY]
---
Build carefully.
"""


def agent(places: Places, name: str) -> Agent:
    return places.load().agents[name]


def test_every_key_is_read_in_each_spelling(places: Places) -> None:
    file = places.agent("any", FULL)
    assert agent(places, "builder") == Agent(
        name="builder",
        description="Builds it",
        source=Source.PROJECT,
        file=str(file),
        model="acme/big",
        thinking="high",
        tools=("read", "bash"),
        excluded_tools=("bash",),
        skills=("safe-bash", "house-rules"),
        append_system_prompt=True,
        project_context=True,
        max_turns=7,
        read_only=False,
        adapter=Adapter.JSONL,
        command=("./agent", "--fast"),
        env_from=("ACME_KEY",),
        system_prompt="Build carefully.",
    )


def test_a_file_with_windows_line_ends_and_a_byte_order_mark_is_like_any_other(
    places: Places,
) -> None:
    places.agent("plain", FULL)
    one = agent(places, "builder")
    places.agent("plain", "\ufeff" + FULL.replace("\n", "\r\n"))
    assert agent(places, "builder") == one


def test_an_unknown_key_is_told_with_its_line_and_what_was_perhaps_meant(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nmodle: acme/big\n---\nx")
    [problem] = places.load().problems
    assert (problem.line, problem.fix) == (3, "did you mean 'model'?")
    assert problem.message == "unknown key 'modle'"


def test_a_key_that_is_there_twice_is_told_and_the_last_counts(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nmodel: x/y\nmodel: x/z\n---\nx")
    assert agent(places, "a").model == "x/z"
    assert places.problems() == ["a.md:4: warning: the key 'model' is there twice; this one counts"]


def test_a_key_without_effect_is_told(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nfallbackModels: x/y\neffort: low\n---\nx")
    assert places.problems() == [
        "a.md:3: warning: 'fallbackModels' has no effect",
        "a.md:4: warning: 'effort' has no effect",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("maxTurns: many", "max_turns: a whole number above 0 is expected, not 'many'"),
        ("maxTurns: 0", "max_turns: a whole number above 0 is expected, not '0'"),
        ("readOnly: maybe", "read_only: true or false is expected, not 'maybe'"),
        ("model: [a, b]", "model: text is expected, not a list"),
        ("tools: {a: b}", "tools: a list of words is expected, not a mapping"),
        (
            "thinking: hgih",
            "thinking: 'hgih' is none of off, minimal, low, medium, high, xhigh, max",
        ),
        ("adapter: jsonl", "adapter jsonl needs a command"),
        ("envFrom: A-B", "env_from: 'A-B' is no name of a variable"),
        ("skills: ../x", "skills: '../x' is no name of a skill"),
        ("name: a b", "'a b' is no name for an agent"),
        ("command: make 'all", "command: No closing quotation"),
        ("tools: [read", "it is not valid YAML"),
        ("tools: &a [read]", "it uses an anchor or alias (& or *)"),
        ('command: ["a\\0b"]', "it has a character that no text may have"),
        ("tools: [[[[[[[[[read]]]]]]]]]", "it is nested more than 8 deep"),
    ],
)
def test_a_wrong_value_leaves_the_agent_out_and_is_told_with_its_line(
    places: Places, line: str, message: str
) -> None:
    places.agent("a", f"---\ndescription: d\n{line}\n---\nx")
    [problem] = places.errors()
    assert "a" not in places.load().agents
    assert problem.message.startswith(message)
    assert problem.line in {3, 4}


def test_a_tool_that_does_not_exist_is_left_out_and_told(places: Places) -> None:
    places.agent("a", "---\ndescription: d\ntools: read, glob, web, Grpe\n---\nx")
    assert agent(places, "a").tools == ("read", "find")
    assert places.problems() == [
        "a.md:3: warning: there is no tool 'web'; it was left out",
        "a.md:3: warning: there is no tool 'Grpe'; it was left out",
    ]


@pytest.mark.parametrize("written", ["tools:", "tools: none", "tools: []", 'tools: ""'])
def test_no_tools_is_something_else_than_tools_not_named(places: Places, written: str) -> None:
    places.agent("some", "---\ndescription: d\n---\nx")
    places.agent("none", f"---\ndescription: d\n{written}\n---\nx")
    assert agent(places, "some").tools is None
    assert agent(places, "none").tools == ()


def test_an_agent_that_is_switched_off_is_left_out(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nenabled: false\n---\nx")
    places.agent("b", "---\ndescription: d\ndisabled: true\n---\nx")
    catalog = places.load()
    assert not {"a", "b"} & set(catalog.agents)
    assert catalog.problems == ()


def test_a_system_prompt_has_a_limit(places: Places) -> None:
    places.agent("a", "---\ndescription: d\n---\n" + "é" * (49 * 1024))
    assert [p.message for p in places.errors()] == ["the system prompt has more than 96 KiB"]


def test_claude_s_agents_are_read_with_their_tools(places: Places) -> None:
    text = "---\nname: a\ndescription: d\ntools: Read, Grep, Bash\nmodel: inherit\n---\n"
    places.write(places.project / ".claude" / "agents" / "a.md", text)
    a = agent(places, "a")
    assert (a.tools, a.model, a.adapter) == (("read", "grep", "bash", "ask"), "", Adapter.PI)
    assert places.problems() == []


@pytest.mark.parametrize("model", ["sonnet", "opus", "Haiku", "gigantic", "sonnet:high"])
def test_a_model_of_another_program_s_file_without_a_provider_is_not_used(
    places: Places, model: str
) -> None:
    text = f"---\nname: a\ndescription: d\nmodel: {model}\n---\n"
    places.write(places.project / ".claude" / "agents" / "a.md", text)
    assert agent(places, "a").model == ""
    [problem] = places.load().problems
    assert (problem.line, problem.fix) == (4, "write it as provider/model")
    said = f"the model {model!r} names no provider; the program's own is used"
    assert problem.message == said


def test_a_model_of_another_program_s_file_with_a_provider_is_used(places: Places) -> None:
    text = "---\nname: a\ndescription: d\nmodel: anthropic/claude-x\n---\n"
    places.write(places.home / ".claude" / "agents" / "a.md", text)
    assert agent(places, "a").model == "anthropic/claude-x"
    assert places.problems() == []


def test_a_model_without_a_provider_is_told_where_pi_is_to_find_it(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nmodel: big\n---\nx")
    places.agent("b", "---\ndescription: d\nmodel: big\nadapter: jsonl\ncommand: x\n---\nx")
    assert (agent(places, "a").model, agent(places, "b").model) == ("big", "big")
    assert places.problems() == [
        "a.md:3: warning: the model 'big' names no provider; pi guesses which is meant"
    ]


def test_what_other_programs_read_line_by_line_is_read_so_and_told(places: Places) -> None:
    text = "---\nname: a\ndescription: Use it so: user: hi\nmodel: inherit\n---\nx"
    places.write(places.project / ".pi" / "agents" / "a.md", text)
    assert agent(places, "a").description == "Use it so: user: hi"
    [problem] = places.load().problems
    assert problem.line == 3
    assert problem.message.endswith("it was read line by line")


def test_files_that_cannot_be_read_are_told(places: Places) -> None:
    good = places.agent("good")
    places.agent("latin").write_bytes(b"---\nname: \xe9\n---\n")
    places.agent("nul", "---\ndescription: d\n---\na\0b")
    places.agent("large", "x" * (256 * 1024 + 1))
    os.mkfifo(good.with_name("pipe.md"))
    good.with_name("folder.md").mkdir()
    good.with_name("nowhere.md").symlink_to("missing")
    assert {p.file.rpartition("/")[2]: p.message for p in places.errors()} == {
        "latin.md": "is not UTF-8 text",
        "nul.md": "is not text: it has a NUL character",
        "large.md": "has more than 256 KiB",
        "pipe.md": "is no regular file",
        "folder.md": "is no regular file",
        "nowhere.md": "cannot be read: No such file or directory",
    }


def test_a_project_s_link_may_not_lead_out_of_it_and_a_user_s_may(places: Places) -> None:
    elsewhere = places.write(places.root / "secret.md", "---\ndescription: d\n---\nsecret")
    inside = places.write(places.project / "docs" / "in.md", "---\ndescription: d\n---\nx")
    places.agent("good").with_name("out.md").symlink_to(elsewhere)
    places.agent("good").with_name("in.md").symlink_to(inside)
    places.user_agent("good").with_name("mine.md").symlink_to(elsewhere)
    found = places.load().agents
    assert {"in", "mine"} <= set(found)
    assert "out" not in found
    assert "leads out of" in places.errors()[0].message


def test_a_loop_of_links_is_told(places: Places) -> None:
    loop = places.agent("good").with_name("loop.md")
    loop.symlink_to("loop.md")
    assert [p.file for p in places.errors()] == [str(loop)]


def test_a_file_s_name_that_is_not_utf_8_can_be_told(places: Places) -> None:
    folder = os.fsencode(places.agent("good").parent)
    with open(folder + b"/\xff.md", "w") as file:  # noqa: PTH123 - a Path has no bytes
        file.write("---\ndescription: d\n---\nx")
    [problem] = places.errors()
    assert problem.file.endswith("/\ufffd.md")
    assert problem.message.encode()


def test_a_command_is_told_its_task_by_an_argument_or_is_no_agent(places: Places) -> None:
    places.agent("deaf", "---\ndescription: d\nadapter: command\ncommand: [./do.sh]\n---\nx")
    places.agent(
        "hears", "---\ndescription: d\nadapter: command\ncommand: [./do.sh, '{prompt}']\n---\nx"
    )

    (problem,) = places.problems()
    assert problem.startswith("deaf.md:4: error: a command is told its task by its arguments only")
    (task,) = places.plan(PlanRequest(goal="tidy up", agent="hears")).tasks
    assert task.command == ("./do.sh", "tidy up")


def test_a_comment_may_stand_before_the_front_matter(places: Places) -> None:
    places.agent("a", "<!-- .crew/agents/a.md -->\n---\ndescription: d\ntools: read\n---\nx")

    assert agent(places, "a").description == "d"
    assert places.problems() == []
