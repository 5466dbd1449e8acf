"""Comments say why the code is so, never how it came to be so."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import pytest

from tests.architecture.sources import modules, name

HISTORY = re.compile(
    r"\b(?:previously|no longer|formerly|originally|was moved|extracted from)\b"
    r"|\b(?:round|phase|sprint|audit|wave)[ -]?\d+\b"
    r"|(?<!/)\b(?:fix(?:es|ed)?|bug|issue|pr|adr|ticket)[ -]?#?\d+\b"
    r"|\b20\d\d-\d\d-\d\d\b"
    r"|\b(?:as of|since|in) v?\d+\.\d+\.\d+\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("module", modules(), ids=name)
def test_comments_carry_no_history(module: Path) -> None:
    with module.open("rb") as file:
        comments = [t for t in tokenize.tokenize(file.readline) if t.type == tokenize.COMMENT]
    assert [f"{t.start[0]}: {t.string}" for t in comments if HISTORY.search(t.string)] == []
