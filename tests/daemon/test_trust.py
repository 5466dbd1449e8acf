from __future__ import annotations

from pathlib import Path

import pytest

from crewd.catalog import is_trusted
from tests.daemon.command import Home

AGENT = "---\nname: build\nadapter: jsonl\ncommand: make all\nenvFrom: KEY\n---\n"
FLOW = "---\nname: w\n---\n## test\ncommand: [make, test]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    crew = tmp_path / "project" / ".crew"
    (crew / "agents").mkdir(parents=True)
    (crew / "agents" / "build.md").write_text(AGENT)
    (crew / "w.workflow.md").write_text(FLOW)
    (tmp_path / "project" / "deep").mkdir()
    return tmp_path / "project"


def test_trust_shows_what_it_allows_and_is_harmless_to_repeat(home: Home, project: Path) -> None:
    first = home.crewd("trust", str(project / "deep"))
    again = home.crewd("trust", str(project))
    assert first.returncode == again.returncode == 0
    assert first.stdout.splitlines() == [
        "its files may start these programs, and any they name later:",
        f"  {project}/.crew/agents/build.md: is given KEY",
        f"  {project}/.crew/agents/build.md: make all",
        f"  {project}/.crew/w.workflow.md:4: make test",
        f"{project} is trusted now",
    ]
    assert again.stdout.endswith(f"{project} was trusted before\n")
    assert is_trusted(home.root / ".config" / "crewd", project)


def test_what_a_terminal_would_obey_is_shown_and_not_sent(home: Home, project: Path) -> None:
    flow = '---\nname: w\n---\n## test\ncommand: ["make", "\\e[1A\\e[2K"]\n'
    (project / ".crew" / "w.workflow.md").write_text(flow)
    done = home.crewd("trust", str(project))
    assert "\x1b" not in done.stdout
    assert "make '\\x1b[1A\\x1b[2K'" in done.stdout


def test_a_project_without_programs_may_be_trusted_too(home: Home, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    done = home.crewd("trust", str(tmp_path / "plain"))
    assert done.stdout.startswith("its files name no programs now")


def test_what_is_no_directory_is_refused(home: Home, tmp_path: Path) -> None:
    missing = home.crewd("trust", str(tmp_path / "missing"))
    (tmp_path / "file").touch()
    file = home.crewd("trust", str(tmp_path / "file"))
    assert missing.returncode == file.returncode == 6
    assert "No such file" in missing.stderr
    assert "is no directory" in file.stderr
