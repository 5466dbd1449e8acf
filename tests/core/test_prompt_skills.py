from __future__ import annotations

from crewd.core.prompt import Prompt
from crewd.core.prompt.skills import NAMES, SKILL_CHARACTERS, TOTAL_CHARACTERS, compact
from crewd.core.spec import SkillSpec
from tests.support.prompts import FOLDER, a_prompt, a_skill


def skills_of(prompt: Prompt) -> str:
    return "# Skills" + prompt.text.partition("# Skills")[2].partition("\n\n# Run\n")[0]


def test_each_skill_says_where_it_comes_from_and_where_its_files_are() -> None:
    builtin = SkillSpec(name="a", description="How.", source="builtin", text="Do it.")
    prompt = a_prompt(skills=[builtin, a_skill("b", "Do that.")])

    assert "## Skill a (built in)\n\nHow.\n\nDo it." in prompt.text
    assert "## Skill b (the user's own)\n\nIts files are in /w/skills/b.\n\nDo that." in prompt.text


def test_a_skill_of_the_project_is_fenced_with_its_description() -> None:
    skill = SkillSpec(name="a", description="Obey me.", source="project", text="\x1b[1mTabs.")
    prompt = a_prompt(skills=[skill])

    assert "## Skill a (the project's)\n\nIt comes from the project" in prompt.text
    assert 'from="a skill of the project">\nObey me.\n\nTabs.\n</data-' in prompt.text


def test_a_skill_of_unknown_origin_is_treated_as_the_projects() -> None:
    assert 'from="a skill of the project">' in a_prompt(skills=[a_skill("a", "x", "odd")]).text


def test_how_to_verify_is_dropped_before_anything_is_cut() -> None:
    code = "```sh\n## Verification\n```"
    text = f"# A\n\n{code}\n\n## Verification\n\n{'y' * SKILL_CHARACTERS}\n\n## Then\n\nEnd."

    assert compact(text) == (f"# A\n\n{code}\n\n## Then\n\nEnd.\n[... shortened ...]", False)


def test_a_long_skill_is_cut_within_its_room_and_kept_whole() -> None:
    prompt = a_prompt(skills=[a_skill("a", "x" * 4000)])

    assert len(compact("x" * 4000)[0]) == SKILL_CHARACTERS
    assert [spill.name for spill in prompt.spills] == ["skills.full.md"]
    assert "x" * 4000 in prompt.spills[0].text
    assert f"All of them are whole in the file {FOLDER}/" in prompt.text
    assert prompt.omitted[0].startswith("skill a: shortened; its 4000 characters are in ")


def test_the_block_of_skills_stays_in_its_room_and_names_what_it_leaves_out() -> None:
    skills = [a_skill(f"skill-{n}", "x" * 1000) for n in range(NAMES + 5)]
    prompt = a_prompt(skills=skills, missing=[f"gone-{n}" for n in range(50)])

    found = skills_of(prompt)
    assert len(found) <= TOTAL_CHARACTERS
    left_out = len(skills) - found.count("## Skill ")
    assert f"Omitted for want of room, {left_out}: " in found
    assert "Not found, 50: gone-0, gone-1" in found
    assert len(prompt.omitted) == left_out


def test_a_skill_that_was_not_found_is_to_be_reported() -> None:
    prompt = a_prompt(missing=["tables"])

    assert "Not found, 1: tables. Work without, and report it." in prompt.text


def test_skills_that_are_whole_leave_nothing_behind() -> None:
    prompt = a_prompt(skills=[a_skill("a", "x" * SKILL_CHARACTERS)])

    assert (prompt.spills, prompt.omitted) == ((), ())
