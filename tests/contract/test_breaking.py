"""A contract that breaks programs of the last release is refused, and what breaks is named."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

CONTRACT = """syntax = "proto3";

package crewd.v1;

// What there is.
message Thing {
  // What it is called.
  string name = 1;
  // How often it is there.
  int32 count = 2;
}
"""
NONE_YET = "WARNING: there is no release yet"


class Repository:
    """A repository with a contract and the script that guards it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contract = folder / "proto" / "crewd" / "v1" / "thing.proto"

    @classmethod
    def new(cls, folder: Path) -> Repository:
        made = cls(folder)
        made.contract.parent.mkdir(parents=True)
        made.contract.write_text(CONTRACT)
        for name in ("breaking.py", "buf.yaml"):
            shutil.copy(ROOT / "proto" / name, folder / "proto")
        made.git("init", "--quiet")
        made.commit()
        return made

    def git(self, *arguments: str | Path) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True)

    def commit(self, tag: str = "") -> None:
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a state")
        if tag:
            self.git("tag", tag)

    def change(self, old: str, new: str) -> None:
        self.contract.write_text(self.contract.read_text().replace(old, new))

    def clone(self, folder: Path) -> Repository:
        """Clone the last commit alone."""
        how = ("--quiet", "--depth=1", "--no-tags", f"file://{self.folder}", folder)
        self.git("clone", *how)
        return Repository(folder)

    def checked(self) -> tuple[int, str]:
        """Return the exit code of the check, and what it says."""
        done = subprocess.run(
            [sys.executable, "proto/breaking.py"],
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stdout == ""
        return done.returncode, done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path / "repository")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("string name = 1", "string title = 1", 'changed name from "name" to "title"'),
        ("int32 count", "int64 count", 'changed type from "int32" to "int64"'),
        ("  int32 count = 2;\n", "", 'field "2" with name "count"'),
        ("  int32 count = 2;\n", '  reserved 2;\n  reserved "count";\n', '"count" on message'),
        ("message Thing", "message Object", 'message "Thing" was deleted'),
        ("package crewd.v1", "package crewd.v2", 'package changed from "crewd.v1" to "crewd.v2"'),
    ],
    ids=["a rename", "another type", "a loss", "a loss, reserved", "another name", "a package"],
)
def test_what_breaks_is_refused_and_named(
    repository: Repository, old: str, new: str, named: str
) -> None:
    repository.commit("v0.1.0")
    repository.change(old, new)
    code, said = repository.checked()
    assert code == 1
    assert named.lower() in said.lower()
    assert "proto/crewd/v1/thing.proto:" in said
    assert "breaks what was written for v0.1.0" in said


def test_a_message_that_moves_to_another_file_is_refused(repository: Repository) -> None:
    repository.commit("v0.1.0")
    repository.contract.rename(repository.contract.with_name("object.proto"))
    code, said = repository.checked()
    assert code == 1
    assert "thing.proto" in said


def test_what_is_added_is_fine(repository: Repository) -> None:
    repository.commit("v0.1.0")
    repository.change("count = 2;", "count = 2;\n  bool wanted = 3;")
    assert repository.checked() == (0, "")


def test_the_highest_release_before_this_commit_counts(repository: Repository) -> None:
    repository.commit("v0.9.0")
    repository.change("string name = 1", "string title = 1")
    repository.commit("v0.10.0")
    repository.commit("v0.11.0-rc.1")
    repository.git("checkout", "--quiet", "-b", "aside")
    repository.change("string title = 1", "string headline = 1")
    repository.commit("v9.0.0")
    repository.git("checkout", "--quiet", "-")
    assert repository.checked() == (0, "")


def test_without_a_release_it_says_so(repository: Repository) -> None:
    repository.commit("nightly")
    code, said = repository.checked()
    assert (code, said.startswith(NONE_YET)) == (0, True)


def test_without_git_it_says_so(repository: Repository) -> None:
    shutil.rmtree(repository.folder / ".git")
    code, said = repository.checked()
    assert (code, said.startswith("WARNING: this is no git repository")) == (0, True)


def test_a_shallow_clone_is_told_to_fetch_the_releases(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("v0.1.0")
    repository.change("int32 count", "int64 count")
    repository.commit()
    clone = repository.clone(tmp_path / "clone")
    code, said = clone.checked()
    assert (code, said.count("git fetch --unshallow --tags")) == (1, 1)
    clone.git("fetch", "--quiet", "--depth=1", "origin", "tag", "v0.1.0")
    assert "breaks what was written for v0.1.0" in clone.checked()[1]


def test_a_shallow_clone_without_a_release_is_fine(repository: Repository, tmp_path: Path) -> None:
    clone = repository.clone(tmp_path / "clone")
    assert clone.checked()[1].startswith(NONE_YET)
    shutil.rmtree(repository.folder)
    code, said = clone.checked()
    assert (code, said.startswith("WARNING: this clone is shallow")) == (0, True)


def test_a_tag_that_cannot_be_read_is_no_success(repository: Repository) -> None:
    shutil.rmtree(repository.folder / "proto" / "crewd")
    repository.commit("v0.1.0")
    repository.contract.parent.mkdir(parents=True)
    repository.contract.write_text(CONTRACT)
    code, said = repository.checked()
    assert code == 1
    assert "breaks" not in said
    assert "Failure" in said
