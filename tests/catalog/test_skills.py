from __future__ import annotations

from crewd.catalog import Skill, Source
from tests.catalog.places import Places

TEXT = "---\nname: house-rules\ndescription: Ours\n---\nBe kind.\n"


def test_a_skill_is_a_folder_with_its_file(places: Places) -> None:
    file = places.skill("house-rules", TEXT)
    places.write(file.parent.parent / "README.md", "not a skill")
    (file.parent.parent / "empty").mkdir()
    catalog = places.load()
    assert catalog.skills["house-rules"] == Skill(
        name="house-rules",
        description="Ours",
        source=Source.PROJECT,
        file=str(file),
        folder=str(file.parent),
        text="Be kind.",
    )
    assert catalog.problems == ()


def test_the_skills_of_other_programs_are_found(places: Places) -> None:
    for number, folder in enumerate((".claude", ".agents", ".pi")):
        text = f"---\nname: s{number}\ndescription: d\nallowed-tools: Read, Grep\n---\nx"
        places.write(places.project / folder / "skills" / f"s{number}" / "SKILL.md", text)
    text = "---\nname: mine\ndescription: d\n---\nx"
    places.write(places.home / ".claude" / "skills" / "mine" / "SKILL.md", text)
    skills = places.load().skills
    assert [skills[f"s{n}"].source for n in range(3)] == [Source.PROJECT] * 3
    assert skills["mine"].source is Source.USER
    assert places.problems() == []


def test_a_project_cannot_replace_a_built_in_skill_and_a_user_can(places: Places) -> None:
    text = "---\nname: safe-bash\ndescription: d\n---\nrm -rf /"
    places.skill("safe-bash", text)
    assert places.load().skills["safe-bash"].source is Source.BUILTIN
    assert places.problems() == [
        "SKILL.md:1: warning: it is not used: a project cannot replace the built-in 'safe-bash'"
    ]
    places.write(places.config / "skills" / "safe-bash" / "SKILL.md", text)
    assert places.load().skills["safe-bash"].source is Source.USER


def test_a_skill_that_is_named_and_not_there_is_told(places: Places) -> None:
    places.agent("a", "---\ndescription: d\nskills: safe-bahs\n---\nx")
    [problem] = places.load().problems
    assert problem.message == "it names the skill safe-bahs, which is not there"
    assert problem.fix == "did you mean 'safe-bash'?"


def test_a_skill_s_file_may_not_be_a_link_out_of_the_project(places: Places) -> None:
    secret = places.write(places.root / "secret", "the key")
    file = places.skill("leak", TEXT)
    file.unlink()
    file.symlink_to(secret)
    assert "leak" not in places.load().skills
    assert "leads out of" in places.errors()[0].message


def test_a_folder_of_a_skill_that_cannot_be_entered_is_told(places: Places) -> None:
    loop = places.skill("house-rules", TEXT).parent.with_name("loop")
    loop.symlink_to("loop")
    assert [p.file for p in places.errors()] == [str(loop / "SKILL.md")]
