from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.workers.text import cut, is_over, tail_text


@given(st.text(), st.integers(4, 40))
def test_cut_text_fits_and_begins_the_same(text: str, limit: int) -> None:
    short = cut(text, limit)

    assert len(short.encode()) <= limit
    assert text.startswith(short)
    assert (short != text) == is_over(text, limit)


@given(st.binary(max_size=80), st.integers(4, 40), st.booleans())
def test_tail_is_valid_text_within_its_limit(data: bytes, limit: int, before: bool) -> None:  # noqa: FBT001
    text, _ = tail_text(data, limit, cut_before=before)

    assert len(text.encode()) <= limit


@pytest.mark.parametrize(
    ("data", "cut_before", "tail"),
    [
        (b"abc", False, ("abc", False)),
        (b"abc", True, ("abc", True)),
        ("xxé€".encode(), False, ("é€", True)),
        (b"\x82\xacab", True, ("ab", True)),
        (b"\xff", False, ("\N{REPLACEMENT CHARACTER}", False)),
        (b"\xff\xff", False, ("\N{REPLACEMENT CHARACTER}", True)),
    ],
)
def test_tail_ends_with_whole_characters(
    data: bytes,
    cut_before: bool,  # noqa: FBT001
    tail: tuple[str, bool],
) -> None:
    assert tail_text(data, 5, cut_before=cut_before) == tail
