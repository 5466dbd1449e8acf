from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crewd.paths import StatePaths, write_private
from crewd.refusal import Refusal, refusing


def test_the_state_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    paths = StatePaths(tmp_path / "deep" / "state")
    paths.make()
    assert paths.root.stat().st_mode & 0o777 == 0o700
    assert paths.transcripts.stat().st_mode & 0o777 == 0o700


def test_an_empty_directory_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.mkdir(mode=0o755)
    StatePaths(root).make()
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_directory_with_other_things_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir(mode=0o755)
    (root / "README").touch()
    with pytest.raises(Refusal, match="holds other things"):
        StatePaths(root).make()
    assert root.stat().st_mode & 0o777 == 0o755


def test_a_directory_that_others_can_write_is_refused_with_the_way_out(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(Refusal, match="can be written by others") as refused:
        StatePaths(root).make()
    assert f"chmod 700 {root}" in refused.value.hint


def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "state"
    root.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: root.stat().st_uid + 1)
    with pytest.raises(Refusal, match="belongs to user"):
        StatePaths(root).make()


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(Refusal, match="File exists"):
        StatePaths(tmp_path / "state").make()


@pytest.mark.parametrize(
    ("code", "way_out"),
    [(errno.ENOSPC, "free some space"), (errno.EACCES, "you can write to"), (errno.EIO, "another")],
)
def test_what_the_system_says_comes_with_a_way_out(code: int, way_out: str) -> None:
    with pytest.raises(Refusal) as refused, refusing("cannot write", Path("/state/token")):
        raise OSError(code, os.strerror(code))
    assert refused.value.message == f"cannot write /state/token: {os.strerror(code)}"
    assert way_out in refused.value.hint


def test_a_private_file_is_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, "one")
    write_private(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "taken", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
