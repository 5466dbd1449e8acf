"""The client's public face is what it says it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import crewd_client


def imported_names() -> list[str]:
    assert crewd_client.__file__ is not None
    tree = ast.parse(Path(crewd_client.__file__).read_text())
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    own = (node for node in imports if (node.module or "").startswith("crewd_client"))
    return sorted(alias.asname or alias.name for node in own for alias in node.names)


def test_all_lists_every_name_that_the_package_takes_from_its_modules() -> None:
    assert sorted(crewd_client.__all__) == imported_names()


@pytest.mark.parametrize("name", crewd_client.__all__)
def test_every_listed_name_is_there(name: str) -> None:
    assert getattr(crewd_client, name) is not None
