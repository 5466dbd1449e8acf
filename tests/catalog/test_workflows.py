from __future__ import annotations

import pytest

from crewd.catalog import Step, Workflow
from crewd.core.spec import Adapter
from tests.catalog.places import Places

HEAD = "---\nname: w\ndescription: d\n---\n"


STEPS = """\
Some words on it.

## plan
role: planner
output: plan.md

Plan {goal}.

## build
role: executor
dependsOn: [plan]
reads: plan.md
parallel_group: make
skills:
  - safe-bash
verify: true
model: x/y

Build it.

## test

command: [make, test]
depends_on: build
"""


def workflow(places: Places, body: str) -> Workflow:
    places.workflow("w", HEAD + body)
    return places.load().workflows["w"]


def test_every_key_of_a_step_is_read_in_each_spelling(places: Places) -> None:
    assert workflow(places, STEPS).steps == (
        Step(id="plan", role="planner", output="plan.md", text="Plan {goal}.", line=7),
        Step(
            id="build",
            role="executor",
            depends_on=("plan",),
            reads=("plan.md",),
            parallel_group="make",
            skills=("safe-bash",),
            verify=True,
            model="x/y",
            text="Build it.",
            line=13,
        ),
        Step(
            id="test",
            depends_on=("build",),
            adapter=Adapter.COMMAND,
            command=("make", "test"),
            line=25,
        ),
    )


def test_headings_in_code_fences_and_prose_are_no_steps(places: Places) -> None:
    body = """\
## write
role: writer

Write it like this:

~~~~
## example
role: nobody
```
~~~~

## Layout of the text

Short.
"""
    [step] = workflow(places, body).steps
    assert step.text.endswith("## Layout of the text\n\nShort.")
    assert "role: nobody" in step.text
    assert places.problems() == []


def test_a_heading_that_looks_like_a_step_without_keys_is_told(places: Places) -> None:
    workflow(
        places, "## notes\n\nWords.\n\n## write\nrole: writer\n\nWrite.\n\n## review\n\nLook.\n"
    )
    assert [problem.line for problem in places.load().problems] == [5, 14]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("just words", 1, "the workflow has no steps"),
        ("## Do It\nrole: writer\n", 5, "'Do It' is no name for a step"),
        ("## a\nrol: writer\n", 5, "the heading 'a' has no key of a step"),
        ("## a\nrole: writer\n\n## a\nrole: writer\n", 8, "the step a is there twice"),
        ("## a\nrole: writer\ndependsOn: b\n", 5, "step a depends on 'b', which is no step"),
        (
            "## a\nrole: writer\ndependsOn: b\n\n## b\nrole: writer\ndependsOn: a\n",
            5,
            "steps wait for each other: a -> b -> a",
        ),
        ("## a\nrole: writer\noutput: ../x\n", 7, "step a: '../x' is no name for an output"),
        ("## a\nrole: writer\nadapter: jsonl\n", 7, "step a: adapter jsonl needs a command"),
        ("## a\nrole: writer\nverify: [yes]\n", 7, "verify: true or false is expected"),
        ("## a\nrole: writer\nreads: [x\n", 7, "it is not valid YAML"),
    ],
)
def test_a_workflow_that_cannot_work_is_left_out(
    places: Places, body: str, line: int, message: str
) -> None:
    places.workflow("w", HEAD + body)
    assert "w" not in places.load().workflows
    first = places.errors()[0]
    assert first.message.startswith(message)
    assert first.line in {line, line + 1}


def test_a_step_that_waits_for_its_own_output_is_a_cycle(places: Places) -> None:
    places.workflow("w", f"{HEAD}## a\nrole: writer\noutput: x.md\nreads: x.md\n")
    assert [p.message for p in places.errors()] == ["steps wait for each other: a -> a"]


def test_what_no_step_hands_in_cannot_be_read(places: Places) -> None:
    workflow(places, "## a\nrole: writer\noutput: plan.md\n\n## b\nrole: writer\nreads: plna.md\n")
    [problem] = places.load().problems
    assert problem.message == "step b reads 'plna.md', which no step hands in"
    assert problem.fix == "did you mean 'plan.md'?"


def test_a_role_that_nobody_can_play_is_told(places: Places) -> None:
    workflow(places, "## a\nrole: writre\n\nWrite.\n")
    [problem] = places.load().problems
    assert problem.message == "step a: no team has a role 'writre', and no agent is called so"
    assert problem.fix == "did you mean 'writer'?"


def test_a_task_with_a_colon_needs_no_quotes(places: Places) -> None:
    [step] = workflow(places, "## a\nrole: writer\ntask: Do this: write\n").steps
    assert step.text == "Do this: write"


def test_text_right_below_the_keys_is_the_task(places: Places) -> None:
    [step] = workflow(places, "## a\nrole: writer\nWrite it down.\n\nAll of it.\n").steps
    assert step.text == "Write it down.\n\nAll of it."
