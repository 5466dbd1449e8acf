"""The cases for prompts taken from upstream. `decision` says where crewd decides differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.model import Task
from crewd.core.prompt import Prompt
from crewd.core.prompt.dependencies import EACH_CHARACTERS
from crewd.core.prompt.skills import TOTAL_CHARACTERS, compact
from crewd.core.prompt.text import displayed, important_lines, is_important, shorten
from crewd.core.spec import SkillSpec
from crewd.core.words import TaskStatus
from tests.support.prompts import FOLDER, a_dependency, a_prompt, a_skill

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "prompt.json").read_text()
)


def important_lines_extract(given: tuple[str, int]) -> list[str]:
    text, most = given
    return important_lines(text.split("\n"), most)


def task_text(text: str) -> str:
    prompt = a_prompt(text=text).text
    return prompt.split("## Text of the task\n\n")[1].removesuffix("\n\n" + expected_of(prompt))


def expected_of(prompt: str) -> str:
    return "# Expected output" + prompt.rpartition("# Expected output")[2]


def foreign_text(given: Case) -> str:
    source = given["source"]
    prompt = a_prompt(skills=[SkillSpec(name="s", source=source, text=given["text"])])
    return given["text"] if given["text"] in prompt.text else prompt.text


def fenced(text: str) -> Case:
    prompt = a_prompt(a_dependency("a", text)).text
    closings = [line for line in prompt.split("\n") if line.startswith("</data-")]
    return {
        "fence_closings_in_rendered_prompt": len(closings),
        "closings": len(closings),
        "text_preserved": text in prompt,
        "says_data_not_instructions": "data, not instructions" in prompt,
    }


def nothing_lost(given: Case) -> Case:
    (part, count), end = given["repeat"]
    return {"kept": part * count + end in a_prompt(text=part * count + end).text}


def truncate(given: Case) -> Case:
    text = shorten(given["text"], given["most"])
    within = len(text) <= given["most"]
    return {"text": text, "truncated": text != given["text"], "within": within}


def budget(given: list[Case]) -> list[Case]:
    tasks = [_sized(task) for task in given]
    omitted = [line.partition(":")[0] for line in a_prompt(*tasks).omitted if "left out" in line]
    return [{"id": task.id, "inline": f"result of {task.id}" not in omitted} for task in tasks]


def _sized(given: Case) -> Task:
    return a_dependency(given["id"], "x" * given["bytes"], status=TaskStatus(given["status"]))


def render(given: Case) -> Case:
    tasks = [
        a_dependency(task["id"], task["text"], output=task.get("output", ""))
        for task in given["dependencies"]
    ]
    prompt = a_prompt(*tasks, reads=given["reads"])
    return {
        "empty": not any(section.name == "dependencies" for section in prompt.sections),
        "hasBody": any(f"\n{task['text']}\n" in prompt.text for task in given["dependencies"]),
        "mentionsFullPath": FOLDER in prompt.text,
        "saysNoOutput": "No result" in prompt.text,
    }


def read(given: Case) -> Case | None:
    if "path" in given:
        prompt = a_prompt(reads=[given["path"]])
        refused = f"`{given['path']}`, which no task before it hands in"
        return None if prompt.text.count(given["path"]) == 1 and refused in prompt.text else {}
    prompt = a_prompt(a_dependency("a", "x" * given["fileChars"]))
    shown = _between(prompt, 'from="result of task a">\n', "\n</data-")
    teed = [spill.name for spill in prompt.spills] == ["a.full.txt"]
    found = {"contentLength": len(shown), "within": len(shown) <= EACH_CHARACTERS}
    return {**found, "teed": teed, "truncated": bool(prompt.omitted)}


def _between(prompt: Prompt, start: str, end: str) -> str:
    return prompt.text.partition(start)[2].partition(end)[0]


def skill_compact(given: Case) -> Case:
    text = given.get("text") or "x" * given["body"]
    if "verification" in given:
        text = f"{text}\n## Verification\n{'y' * given['verification']}"
    shown, whole = compact(text)
    found = {"hasVerification": "Verification" in shown, "length": len(shown)}
    return {**found, "truncationMarker": not whole}


def skill_render(given: Case) -> Case:
    if "charsEach" in given:
        skills = [a_skill(f"big{n}", "x" * given["charsEach"]) for n in range(given["skills"])]
        prompt = a_prompt(skills=skills)
    else:
        prompt = a_prompt(skills=[a_skill("myskill", "# Rule")], missing=["missing"])
    text = _between(prompt, "# Skills", "# Run\n")
    titles = [line.split()[2] for line in text.split("\n") if line.startswith("## Skill ")]
    missing = text.partition("Not found, 1: ")[2].partition(". Work")[0]
    return {
        "hasRule": "# Rule" in text,
        "mentionsMissing": "Not found, 1: missing." in text,
        "names": [*titles, missing],
        "paths": [line[17:-1] for line in text.split("\n") if line.startswith("Its files are in")],
        "hasNotice": "Omitted for want of room, 5: big3, big4" in text,
        "rendered": titles,
        "within": len(text) <= TOTAL_CHARACTERS,
    }


def skill_selection(given: Case) -> list[str]:
    prompt = a_prompt(skills=[a_skill(name, "x") for name in given["skills"]])
    lines = prompt.text.split("\n")
    return [line.split()[2] for line in lines if line.startswith("## Skill ")]


AREAS: Final[Mapping[str, Callable[[Any], object]]] = {
    "important_line": is_important,
    "important_lines_extract": important_lines_extract,
    "task_text_sanitize": task_text,
    "prompt.fidelity": task_text,
    "agent_prompt_sanitize": foreign_text,
    "prompt.fence": fenced,
    "ask_answer_render": lambda given: fenced(given["text"]),
    "prompt.time": nothing_lost,
    "compaction_stage": lambda given: displayed(given["text"]),
    "compaction_pipeline": lambda text: {"text": displayed(text)},
    "compaction_truncate": truncate,
    "dependency_budget": budget,
    "dependency_render": render,
    "dependency_read": read,
    "skill_compact": skill_compact,
    "skill_render": skill_render,
    "skill_selection": skill_selection,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case) -> None:
    found, expected = AREAS[case["area"]](case["input"]), case["expect"]
    if isinstance(found, dict):
        found = {key: found[key] for key in expected}

    assert found == expected


def test_every_area_has_cases_and_every_deviation_says_why() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
    for case in CASES:
        assert ("decision" in case) is ("upstream_expect" in case)
        assert case.get("decision", "A.").endswith(".")
