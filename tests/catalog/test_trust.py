from __future__ import annotations

from pathlib import Path

import pytest

from crewd.catalog import is_trusted, trust


def test_a_project_is_trusted_once_it_was_said_and_said_once(tmp_path: Path) -> None:
    config, root = tmp_path / "config", tmp_path / "project"
    root.mkdir()
    assert not is_trusted(config, root)
    assert trust(config, root)
    assert not trust(config, root)
    assert is_trusted(config, root)
    assert not is_trusted(config, tmp_path)
    assert not is_trusted(config, root / "missing")
    assert (config / "trusted").stat().st_mode & 0o777 == 0o600


def test_it_is_the_directory_that_counts_not_the_name_it_is_reached_by(tmp_path: Path) -> None:
    config, root, link = tmp_path / "config", tmp_path / "project", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)
    trust(config, link)
    assert is_trusted(config, root)
    other = tmp_path / "other"
    other.mkdir()
    link.unlink()
    link.symlink_to(other)
    assert not is_trusted(config, link)


def test_a_list_without_a_last_line_end_stays_whole(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for root in (first, second):
        root.mkdir()
    (tmp_path / "trusted").write_text(str(first))
    (tmp_path / "trusted").chmod(0o600)
    trust(tmp_path, second)
    assert is_trusted(tmp_path, first)
    assert is_trusted(tmp_path, second)


def test_a_list_that_others_can_write_to_trusts_nothing_and_is_not_taken_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "trusted").write_text(f"{tmp_path}\n")
    (tmp_path / "trusted").chmod(0o666)
    assert not is_trusted(tmp_path, tmp_path)
    with pytest.raises(PermissionError):
        trust(tmp_path, tmp_path)
    assert not is_trusted(tmp_path, tmp_path)


def test_a_name_with_a_line_break_cannot_smuggle_in_another(tmp_path: Path) -> None:
    root = tmp_path / "a\nb"
    root.mkdir()
    with pytest.raises(OSError, match="line break"):
        trust(tmp_path, root)
