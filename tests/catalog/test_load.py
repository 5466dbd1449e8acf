from __future__ import annotations

from pathlib import Path

import pytest

from crewd.catalog import Severity, Source, cache_use, load, root_of
from tests.catalog.places import Places

TEXT = "---\ndescription: {0}\n---\n{0}"


def test_a_user_s_agent_counts_before_a_built_in_one_and_that_before_a_project_s(
    places: Places,
) -> None:
    for name in ("planner", "writer", "mine"):
        places.agent(name, TEXT.format("project"))
    for name in ("planner", "mine"):
        places.user_agent(name, TEXT.format("user"))
    agents = places.load().agents
    found = [agents[name].source for name in ("planner", "writer", "mine")]
    assert found == [Source.USER, Source.BUILTIN, Source.USER]
    assert [p.message.partition(":")[0] for p in places.load().problems] == ["it is not used"] * 3


def test_a_user_s_own_agents_count_before_those_written_for_other_programs(
    places: Places,
) -> None:
    for folder in (".pi/agent/agents", ".claude/agents", ".config/crewd/agents"):
        places.write(places.home / folder / "a.md", TEXT.format(folder))
        assert places.load().agents["a"].description == folder


def test_a_project_s_own_agents_count_before_those_written_for_other_programs(
    places: Places,
) -> None:
    for folder in (".pi/agents", ".claude/agents", ".crew/agents"):
        places.write(places.project / folder / "a.md", TEXT.format(folder))
        assert places.load().agents["a"].description == folder


def test_a_home_that_is_a_project_too_is_read_once(places: Places) -> None:
    places.write(places.home / ".claude" / "agents" / "a.md", TEXT.format("d"))
    catalog = load(places.home, places.home, places.config)
    assert catalog.agents["a"].source is Source.USER
    assert catalog.problems == ()


def test_without_a_project_there_is_what_is_built_in_and_the_user_s(places: Places) -> None:
    places.user_agent("mine")
    places.agent("theirs")
    found = load(None, places.home, places.config).agents
    assert {"mine", "explorer"} <= set(found)
    assert "theirs" not in found


def test_folders_that_cannot_be_listed_are_told(places: Places) -> None:
    folder = places.project / ".crew"
    folder.mkdir(parents=True)
    (folder / "agents").symlink_to("agents")
    [problem] = places.load().problems
    assert problem.severity is Severity.ERROR
    assert problem.message.startswith("cannot be listed")


def test_only_so_many_files_of_a_folder_are_read_and_the_rest_is_told(places: Places) -> None:
    for number in range(501):
        places.agent(f"a{number:03}")
    assert len([a for a in places.load().agents.values() if a.source is Source.PROJECT]) == 500
    assert [p.message for p in places.errors()] == ["holds 501 files; only the first 500 were read"]


def test_a_folder_of_agents_that_is_a_link_out_of_the_project_gives_none(places: Places) -> None:
    places.write(places.root / "other" / "a.md", TEXT.format("d"))
    (places.project / ".crew").mkdir(parents=True)
    (places.project / ".crew" / "agents").symlink_to(places.root / "other")
    assert "a" not in places.load().agents
    assert "leads out of" in places.errors()[0].message


@pytest.mark.parametrize("mark", [".crew", ".git"])
def test_the_project_is_the_nearest_folder_above_with_a_mark(tmp_path: Path, mark: str) -> None:
    (tmp_path / "outer" / ".git").mkdir(parents=True)
    (tmp_path / "outer" / "inner" / mark).mkdir(parents=True)
    deep = tmp_path / "outer" / "inner" / "a" / "b"
    deep.mkdir(parents=True)
    assert root_of(deep) == tmp_path / "outer" / "inner"
    assert root_of(tmp_path / "outer" / "x") == tmp_path / "outer"


def test_a_directory_without_a_mark_above_is_its_own_project(tmp_path: Path) -> None:
    assert root_of(tmp_path) == tmp_path


def test_a_file_is_parsed_again_only_when_its_text_is_another(tmp_path: Path) -> None:
    folder = tmp_path / ".crew" / "agents"
    folder.mkdir(parents=True)
    file = folder / "scribe.md"
    file.write_text("---\nname: scribe\n---\nWrite.\n")
    load(tmp_path, tmp_path / "home", tmp_path / "config")

    before = cache_use()
    load(tmp_path, tmp_path / "home", tmp_path / "config")
    again = cache_use()
    file.write_text("---\nname: scribe\n---\nWrite more.\n")
    catalog = load(tmp_path, tmp_path / "home", tmp_path / "config")

    assert (again.hits - before.hits, again.misses - before.misses) == (1, 0)
    assert cache_use().misses - again.misses == 1
    assert catalog.agents["scribe"].system_prompt == "Write more."
