from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.workers.lines import Stream
from crewd.workers.transcript import Chunk, Sizes, Transcript, delete_run

KEY = ("run_a", "build", 1)
SMALL = Sizes(head=10, tail=8, segment=4)
OUT, ERR = Stream.STDOUT, Stream.STDERR


def read_all(transcript: Transcript, limit: int = 1000) -> list[Chunk]:
    chunks: list[Chunk] = []
    offset = 0
    while offset < transcript.length(OUT):
        chunks.append(transcript.read(OUT, offset, limit))
        offset = chunks[-1].next_offset
    return chunks


def letters(count: int) -> bytes:
    return bytes(ord("a") + i % 26 for i in range(count))


def files(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((root / "run_a").iterdir())}


def test_nothing_is_created_before_the_first_byte(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "transcripts", KEY)
    transcript.append(OUT, b"")
    transcript.truncate_to(OUT, 0)

    assert transcript.read(OUT, 0, 10) == Chunk(0, b"", 0)
    assert transcript.tail(OUT, 10) == (b"", False)
    assert list(tmp_path.iterdir()) == []


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "transcripts", KEY)
    transcript.append(ERR, b"oops\n")

    folder = tmp_path / "transcripts" / "run_a"
    assert (folder / "build.1.stderr").read_bytes() == b"oops\n"
    modes = [p.stat().st_mode & 0o777 for p in (folder.parent, folder, folder / "build.1.stderr")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_read_gives_the_offset_to_read_on_from(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, KEY)
    transcript.append(OUT, b"hello ")
    transcript.append(OUT, b"world")

    assert transcript.read(OUT, 2, 5) == Chunk(2, b"llo w", 7)
    assert transcript.read(OUT, 7, 100) == Chunk(7, b"orld", 11)
    assert transcript.read(OUT, 11, 100) == Chunk(11, b"", 11)
    assert transcript.read(OUT, -3, 100) == Chunk(8, b"rld", 11)
    assert transcript.read(OUT, -99, 2) == Chunk(0, b"he", 2)


def test_the_middle_of_a_long_stream_is_dropped_and_offsets_stay(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, KEY, sizes=SMALL)
    transcript.append(OUT, letters(25))

    assert files(tmp_path) == {
        "build.1.stdout": letters(25)[:10],
        "build.1.stdout.18": letters(25)[18:22],
        "build.1.stdout.22": letters(25)[22:25],
    }
    assert transcript.read(OUT, 12, 100) == Chunk(18, letters(25)[18:22], 22, truncated_before=True)
    assert read_all(transcript) == [
        Chunk(0, letters(25)[:10], 10),
        Chunk(18, letters(25)[18:22], 22, truncated_before=True),
        Chunk(22, letters(25)[22:25], 25),
    ]
    assert transcript.tail(OUT, 5) == (letters(25)[20:25], True)


def test_another_object_reads_as_far_as_was_committed(tmp_path: Path) -> None:
    Transcript(tmp_path, KEY).append(OUT, b"committed and more")

    assert Transcript(tmp_path, KEY, lengths=(9, 0)).tail(OUT, 100) == (b"committed", False)


def test_a_file_shorter_than_committed_is_served_as_far_as_it_goes(tmp_path: Path) -> None:
    Transcript(tmp_path, KEY).append(OUT, b"short")
    transcript = Transcript(tmp_path, KEY, lengths=(9, 4))

    assert transcript.read(OUT, 0, 100) == Chunk(0, b"short", 5)
    assert transcript.read(OUT, 5, 100) == Chunk(9, b"", 9, truncated=True)
    assert transcript.read(ERR, 0, 100) == Chunk(4, b"", 4, truncated=True)
    assert transcript.tail(OUT, 100) == (b"short", True)


@given(
    st.lists(st.integers(0, 6), max_size=12),
    st.integers(0, 12),
    st.integers(0, 9),
)
def test_appending_again_after_a_crash_gives_the_same_files(
    sizes: list[int], crash: int, lost: int
) -> None:
    with TemporaryDirectory() as whole, TemporaryDirectory() as crashed:
        appended_after_a_crash(Path(whole), Path(crashed), sizes, crash, lost)


def appended_after_a_crash(
    whole: Path, crashed: Path, sizes: list[int], crash: int, lost: int
) -> None:
    data = letters(sum(sizes))
    committed = sum(sizes[:crash])
    transcript = Transcript(whole, KEY, sizes=SMALL)
    first = Transcript(crashed, KEY, sizes=SMALL)
    for size in sizes:
        transcript.append(OUT, data[transcript.length(OUT) :][:size])
    for size in sizes[:crash]:
        first.append(OUT, data[first.length(OUT) :][:size])
    # What was not committed comes again from the spool, so it is never more than is still to come.
    first.append(OUT, b"x" * min(lost, SMALL.tail, len(data) - committed))

    second = Transcript(crashed, KEY, lengths=(committed, 0), sizes=SMALL)
    second.truncate_to(OUT, committed)
    second.append(OUT, data[committed:])

    assert read_all(second) == read_all(transcript)
    if data:
        assert files(crashed) == files(whole)


def test_deleting_a_run_frees_its_bytes_once(tmp_path: Path) -> None:
    Transcript(tmp_path, KEY).append(OUT, b"12345")
    Transcript(tmp_path, ("run_b", "build", 1)).append(OUT, b"kept")

    assert delete_run(tmp_path, "run_a") == 5
    assert delete_run(tmp_path, "run_a") == 0
    assert [p.name for p in tmp_path.iterdir()] == ["run_b"]


@pytest.mark.parametrize("name", ["", "..", "a/b", ".", "/etc"])
def test_what_is_no_id_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        delete_run(tmp_path, name)
    with pytest.raises(ValueError, match=r".*"):
        Transcript(tmp_path, ("run_a", name, 1))


def test_a_transcript_leaves_a_reserve_on_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        Transcript(tmp_path, KEY, reserve=1 << 60).append(OUT, b"hello")

    assert raised.value.errno == errno.ENOSPC
    transcript = Transcript(tmp_path, KEY)
    transcript.truncate_to(OUT, 0)
    transcript.append(OUT, b"hello")
    assert transcript.read(OUT, 0, 10).data == b"hello"


def test_the_disk_is_not_looked_at_for_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Mock(wraps=os.fstatvfs)
    monkeypatch.setattr(os, "fstatvfs", look)
    transcript = Transcript(tmp_path, KEY)

    for _ in range(100):
        transcript.append(OUT, b"line\n")
    assert look.call_count == 1
    transcript.append(OUT, bytes(1 << 16))
    assert look.call_count == 2
