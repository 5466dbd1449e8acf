from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from crewd.store import mask
from crewd.store.artifacts import ArtifactFiles, Kept, Source
from crewd.store.sources import SourceRefusedError

RUN = "run_aaaaaaaaaa"
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"  # noqa: S105 - of a test


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return the directory of the task."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def files(tmp_path: Path) -> ArtifactFiles:
    return ArtifactFiles(tmp_path / "artifacts", reserve=0)


def keep(files: ArtifactFiles, work: Path, path: str, media_type: str = "") -> Kept:
    return files.keep_file(RUN, Source(root=work, path=path, media_type=media_type))


def names(files: ArtifactFiles) -> list[str]:
    return [path.name for path in files.folder(RUN).iterdir()]


def refusal(files: ArtifactFiles, work: Path, path: str) -> str:
    with pytest.raises(SourceRefusedError) as refused:
        keep(files, work, path)
    assert files.size_of(RUN) == 0
    return str(refused.value)


def content(files: ArtifactFiles, kept: Kept) -> bytes:
    opened = files.open(RUN, kept.sha256)
    try:
        assert opened.size == kept.size
        return opened.read(0, opened.size)
    finally:
        opened.close()


def test_a_text_is_kept_under_its_digest_for_us_alone(files: ArtifactFiles) -> None:
    kept = files.keep_text(RUN, "grüße\n")
    data = "grüße\n".encode()
    assert kept == Kept(sha256=sha256(data).hexdigest(), size=len(data))
    assert content(files, kept) == data
    path = files.folder(RUN) / kept.sha256
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent, path.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]


def test_the_same_content_is_one_file_and_mends_a_damaged_one(files: ArtifactFiles) -> None:
    kept = files.keep_text(RUN, "same")
    (files.folder(RUN) / kept.sha256).write_text("sham")
    assert files.keep_text(RUN, "same") == kept
    assert content(files, kept) == b"same"
    assert names(files) == [kept.sha256]
    assert files.size_of(RUN) == 4


@pytest.mark.parametrize("path", ["out/a.bin", "./out//a.bin", "{work}/out/a.bin", "..out/a.bin"])
def test_a_file_beneath_the_directory_is_copied(
    files: ArtifactFiles, work: Path, path: str
) -> None:
    for folder in ("out", "..out"):
        (work / folder).mkdir()
        (work / folder / "a.bin").write_bytes(b"\0\1\2")
    kept = keep(files, work, path.format(work=work))
    (work / "out" / "a.bin").write_bytes(b"changed")
    assert content(files, kept) == b"\0\1\2"
    assert not kept.is_text


def test_the_directory_may_be_known_by_two_names(files: ArtifactFiles, work: Path) -> None:
    (work / "a").write_bytes(b"a")
    alias = work.parent / "alias"
    alias.symlink_to(work)
    for path in (f"{work}/a", f"{alias}/a", "a"):
        assert content(files, keep(files, alias, path)) == b"a"


def test_a_way_out_is_refused(files: ArtifactFiles, work: Path) -> None:
    outside = work.parent / "outside"
    outside.write_text("not yours")
    evil = work.parent / "work-evil"
    evil.mkdir()
    (evil / "a").write_text("not yours")
    for path in ("../outside", "a/../../outside", str(outside), f"{evil}/a", f"{work}/../outside"):
        said = refusal(files, work, path)
        assert path.split("/")[-1] in said
        assert "directory" in said


def test_a_symbolic_link_is_not_followed_wherever_it_is(files: ArtifactFiles, work: Path) -> None:
    (work.parent / "outside").mkdir()
    (work.parent / "outside" / "a").write_text("not yours")
    (work / "folder").symlink_to(work.parent / "outside")
    (work / "file").symlink_to(work.parent / "outside" / "a")
    (work / "dangling").symlink_to(work.parent / "nothing")
    (work / "loop").symlink_to("loop")
    for path in ("folder/a", "file", "dangling", "loop", "loop/a"):
        assert "symbolic link" in refusal(files, work, path)


def test_what_is_no_file_is_refused_at_once(files: ArtifactFiles, work: Path) -> None:
    os.mkfifo(work / "pipe")
    (work / "folder").mkdir()
    said = {"pipe": "pipe", "folder": "directory", "missing": "not there", "": "directory"}
    for path, why in said.items():
        assert why in refusal(files, work, path)
    assert "device" in refusal(files, Path("/dev"), "zero")
    assert "NUL" in refusal(files, work, "a\0b")
    assert "name" in refusal(files, work, "n" * 300)


def test_a_file_without_permission_is_refused(files: ArtifactFiles, work: Path) -> None:
    (work / "a").write_text("a")
    (work / "a").chmod(0)
    if os.access(work / "a", os.R_OK):
        pytest.skip("root may read everything")
    assert "mode" in refusal(files, work, "a")


def test_a_link_that_is_swapped_in_never_leads_out(files: ArtifactFiles, work: Path) -> None:
    outside = work.parent / "outside"
    for folder, text in ((outside, "not yours"), (work / "here", "mine"), (work / "there", "mine")):
        folder.mkdir()
        (folder / "a").write_text(text)
    (work / "link").symlink_to(outside)
    swapping = threading.Event()

    def swap() -> None:
        while not swapping.is_set():
            (work / "link").rename(work / "spare")
            (work / "here").rename(work / "link")
            (work / "link").rename(work / "here")
            (work / "spare").rename(work / "link")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = {_tried(files, work, "link/a") for _ in range(300)}
    finally:
        swapping.set()
        thread.join()
    assert seen <= {b"mine", None}


def _tried(files: ArtifactFiles, work: Path, path: str) -> bytes | None:
    try:
        return content(files, keep(files, work, path))
    except SourceRefusedError:
        return None


def test_a_file_over_the_limit_is_refused(tmp_path: Path, work: Path) -> None:
    files = ArtifactFiles(tmp_path / "artifacts", most=10, reserve=0)
    (work / "a").write_bytes(b"0" * 10)
    assert keep(files, work, "a").size == 10
    files.delete_run(RUN)
    (work / "a").write_bytes(b"0" * 11)
    assert "11 bytes, the most is 10" in refusal(files, work, "a")


def changing(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[int], object], times: int = 99
) -> None:
    """Have the file changed while it is read, so often."""
    read, left = os.pread, [times]

    def pread(file: int, limit: int, offset: int) -> bytes:
        data = read(file, limit, offset)
        if offset and left[0]:
            left[0] -= 1
            change(left[0])
        return data

    monkeypatch.setattr(os, "pread", pread)


def test_a_file_that_changed_while_it_was_read_is_read_again(
    files: ArtifactFiles, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_bytes(b"first")
    changing(monkeypatch, lambda _: (work / "a").write_bytes(b"the second"), times=1)
    assert content(files, keep(files, work, "a")) == b"the second"


def test_a_file_that_never_rests_is_refused(
    files: ArtifactFiles, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "a").write_bytes(b"first")
    changing(monkeypatch, lambda n: (work / "a").write_bytes(b"x" * (n + 6)))
    with pytest.raises(SourceRefusedError, match="goes on changing"):
        keep(files, work, "a")


def test_text_is_masked_and_says_so(files: ArtifactFiles, work: Path) -> None:
    lines = [f"line {n}\n" for n in range(200_000)] + [f"{SECRET}\n", "no end"]
    (work / "a.log").write_text("".join(lines))
    kept = keep(files, work, "a.log", "text/plain; charset=utf-8")
    assert kept.redacted
    assert content(files, kept).decode() == "".join(lines).replace(SECRET, "***")
    assert files.keep_text(RUN, SECRET).redacted
    assert not files.keep_text(RUN, "nothing").redacted


@pytest.mark.parametrize(
    ("data", "media_type", "is_masked"),
    [
        (SECRET.encode(), "", True),
        (SECRET.encode(), "application/problem+json", True),
        (SECRET.encode(), "image/png", False),
        (b"\0" + SECRET.encode(), "text/plain", False),
        (b"\xff" + SECRET.encode(), "", False),
        (b"x" * (mask.HEAD_BYTES - 1) + "ü".encode() + SECRET.encode(), "", True),
        (b"x" * mask.HEAD_BYTES + b"\xff\0\n" + SECRET.encode(), "", True),
    ],
)
def test_only_text_is_masked(
    files: ArtifactFiles, work: Path, data: bytes, media_type: str, *, is_masked: bool
) -> None:
    (work / "a").write_bytes(data)
    kept = keep(files, work, "a", media_type)
    expected = data.replace(SECRET.encode(), b"***") if is_masked else data
    assert (content(files, kept), kept.redacted) == (expected, is_masked)


def test_a_long_text_is_masked_like_a_short_one(files: ArtifactFiles, work: Path) -> None:
    lines = [f"line {n}\n" for n in range(1_500_000)]
    for at in (0, 700_000, 1_499_999):
        lines[at] = f"{SECRET}\n"
    (work / "a.log").write_text("".join(lines))
    kept = keep(files, work, "a.log")
    assert kept.redacted
    assert content(files, kept).decode() == "".join(lines).replace(SECRET, "***")


def test_a_line_without_end_is_masked_in_pieces() -> None:
    plain, secret = b"x" * (1 << 20), SECRET.encode()
    blocks = [b"short\n", *[plain] * 12, b" " + secret + b" ", *[plain] * 12, b"\nnext\n" + secret]
    masker = mask.Mask()
    pieces = list(masker.text(blocks))
    whole = b"".join(pieces)
    assert masker.changed
    assert whole.startswith(b"short\nxxx")
    assert whole.endswith(b"\nnext\n***")
    assert secret not in whole
    assert max(map(len, pieces)) <= mask.LONGEST_LINE + (2 << 20)
    assert len(whole) > 23 << 20


def test_an_error_of_our_disk_is_no_refusal_and_leaves_nothing(tmp_path: Path, work: Path) -> None:
    files = ArtifactFiles(tmp_path / "artifacts", reserve=1 << 60)
    (work / "a").write_bytes(b"a")
    with pytest.raises(OSError, match="No space left") as full:
        keep(files, work, "a")
    assert full.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space left"):
        files.keep_text(RUN, "a")
    assert names(files) == []


def test_what_another_process_left_unfinished_is_swept(
    files: ArtifactFiles, tmp_path: Path
) -> None:
    kept = files.keep_text(RUN, "whole")
    for left in (".draft-dead-1", ".draft-dead-2"):
        (files.folder(RUN) / left).write_text("half")
    ArtifactFiles(tmp_path / "artifacts").sweep(RUN)
    assert names(files) == [kept.sha256]
    files.sweep("run_unknown")


def test_the_runs_are_listed_and_deleted(files: ArtifactFiles, tmp_path: Path) -> None:
    assert files.runs() == []
    kept = files.keep_text(RUN, "a")
    files.keep_text("run_b", "b")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "artifacts" / "run_link").symlink_to(outside)
    assert files.runs() == [RUN, "run_b"]
    files.delete_run(RUN)
    files.delete_run(RUN)
    assert files.runs() == ["run_b"]
    assert files.size_of(RUN) == 0
    with pytest.raises(FileNotFoundError):
        files.open(RUN, kept.sha256)


def test_neither_a_run_nor_a_digest_can_lead_away(files: ArtifactFiles, tmp_path: Path) -> None:
    files.keep_text(RUN, "a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "artifacts" / "run_link").symlink_to(tmp_path / "outside")
    with pytest.raises(NotADirectoryError):
        files.keep_text("run_link", "a")
    for run_id in ("..", "a/b", "", "."):
        with pytest.raises(ValueError, match=f"^{re.escape(run_id)}$"):
            files.keep_text(run_id, "a")
    for digest in ("../x", "", "A" * 64):
        with pytest.raises(FileNotFoundError):
            files.open(RUN, digest)
    (files.folder(RUN) / ("0" * 64)).symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic"):
        files.open(RUN, "0" * 64)
