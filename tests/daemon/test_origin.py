from __future__ import annotations

import os
from pathlib import Path

from crewd.origin import Origin


def test_files_that_stay_ask_for_no_restart(tmp_path: Path) -> None:
    (tmp_path / "file.py").touch()
    origin = Origin(tmp_path / "file.py")

    (tmp_path / "file.py").read_text()

    assert not origin.is_replaced()


def test_a_file_that_was_replaced_asks_for_a_restart(tmp_path: Path) -> None:
    (tmp_path / "file.py").touch()
    origin = Origin(tmp_path / "file.py")

    (tmp_path / "new.py").touch()
    os.replace(tmp_path / "new.py", tmp_path / "file.py")  # noqa: PTH105  # as pip does

    assert origin.is_replaced()


def test_a_file_that_is_gone_asks_for_a_restart(tmp_path: Path) -> None:
    (tmp_path / "file.py").touch()
    origin = Origin(tmp_path / "file.py")

    (tmp_path / "file.py").unlink()

    assert origin.is_replaced()
