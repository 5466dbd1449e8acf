from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.workers.lines import Block, Splitter, lines_of

CAP = 8
# Mostly short words and line ends, so that lines fall on both sides of the cap.
STREAMS = st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"bcd", b"0123456789"]), max_size=40).map(
    b"".join
)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def folded(blocks: list[Block]) -> list[bytes | None]:
    """Return what a fold sees; None for an oversize line."""
    lines: list[bytes | None] = []
    for block in blocks:
        if not block.oversize:
            lines += lines_of(block)
        elif block.begins:
            lines.append(None)
    return lines


def expected(data: bytes) -> list[bytes | None]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [None if len(line) > CAP else line.removesuffix(b"\r") for line in lines]


@given(STREAMS, st.lists(st.integers(0, 400), max_size=20))
def test_any_chunking_gives_the_same_lines_and_bytes(data: bytes, cuts: list[int]) -> None:
    splitter = Splitter(cap=CAP)

    blocks = [b for chunk in cut(data, cuts) for b in splitter.feed(chunk)] + splitter.finish()

    assert b"".join(b.data for b in blocks) == data
    assert folded(blocks) == expected(data)
    assert splitter.offset == len(data)


@given(STREAMS, st.lists(st.integers(0, 400), max_size=20), st.integers(0, 20))
def test_a_splitter_made_anew_from_offset_and_skipping_goes_on_the_same(
    data: bytes, cuts: list[int], crash: int
) -> None:
    chunks = cut(data, cuts)
    first = Splitter(cap=CAP)
    blocks = [b for chunk in chunks[:crash] for b in first.feed(chunk)]

    second = Splitter(first.offset, skipping=first.skipping, cap=CAP)
    blocks += second.feed(data[second.read_to :]) + second.finish()

    assert b"".join(b.data for b in blocks) == data
    assert folded(blocks) == expected(data)


@given(STREAMS, st.lists(st.integers(0, 400), max_size=20))
def test_no_more_than_the_cap_is_held(data: bytes, cuts: list[int]) -> None:
    splitter = Splitter(cap=CAP)
    read = 0

    for chunk in cut(data, cuts):
        splitter.feed(chunk)
        read += len(chunk)
        assert splitter.read_to == read
        assert splitter.read_to - splitter.offset <= CAP


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"no end", [b"no end"]),
    ],
)
def test_a_line_loses_its_end_and_nothing_else(data: bytes, lines: list[bytes]) -> None:
    splitter = Splitter()

    assert folded(splitter.feed(data) + splitter.finish()) == lines


def test_whole_lines_leave_as_one_block_and_a_part_waits() -> None:
    splitter = Splitter()

    assert splitter.feed(b"one\ntwo\nthr") == [Block(b"one\ntwo\n")]
    assert (splitter.offset, splitter.read_to) == (8, 11)
    assert splitter.feed(b"ee\n") == [Block(b"three\n")]


def test_an_oversize_line_comes_in_pieces_and_the_next_line_is_whole() -> None:
    splitter = Splitter(cap=4)

    assert splitter.feed(b"abcdef") == [Block(b"abcdef", oversize=True, begins=True)]
    assert splitter.skipping
    assert splitter.feed(b"gh\nok\n") == [Block(b"gh\n", oversize=True), Block(b"ok\n")]
    assert not splitter.skipping
