"""The bytes of artifacts: one file for each different content of a run, named by its digest.

A file is on the disk, with its name, before anything is recorded that names it. It is written
under a name of its own and renamed when it is whole, so what bears a digest was whole once. Every
function blocks and belongs in a thread.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Final

from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.redaction.redactor import redact
from crewd.core.values import record
from crewd.store.mask import Mask, looks_like_text
from crewd.store.sources import SourceRefusedError, opened_beneath, read_source

MIB: Final = 1024 * 1024
MOST_BYTES: Final = 256 * MIB
"""The size of a file that is still kept."""
RESERVE: Final = 24 * MIB
"""Room that artifacts leave on the disk, as transcripts do."""
TRIES: Final = 3
"""How often a file is read that changes meanwhile."""
_SMALL_SHARE: Final = 10
"""Of a small disk no more than this part is kept free."""
_BLOCK: Final = MIB
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_DRAFT: Final = ".draft-"
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@record
class Kept:
    """What became of bytes that were handed in."""

    sha256: str
    size: int
    redacted: bool = False
    """Something in it was masked."""
    is_text: bool = True


@record
class Source:
    """A file of a worker. `path` is relative to `root`, the task's directory, or inside it."""

    root: Path
    path: str
    media_type: str = ""


class Opened:
    """The bytes of one artifact, as they were when they were opened."""

    def __init__(self, file: int) -> None:
        self._file = file
        self.size = os.fstat(file).st_size

    def read(self, offset: int, limit: int) -> bytes:
        return os.pread(self._file, limit, offset)

    def close(self) -> None:
        os.close(self._file)


class ArtifactFiles:
    """The artifacts of all runs, each run's in a folder of its own."""

    def __init__(self, root: Path, *, most: int = MOST_BYTES, reserve: int | None = None) -> None:
        self._root = root
        self._most = most
        self._reserve = reserve
        self._mine = f"{_DRAFT}{token_hex(4)}-"
        """What the unfinished files of this process begin with."""

    def folder(self, run_id: str) -> Path:
        """Return where a run's artifacts are. ValueError for what is no id."""
        return self._root / _checked(run_id)

    def keep_text(self, run_id: str, text: str, known: KnownSecrets = NOTHING_KNOWN) -> Kept:
        """Keep a text, redacted, as UTF-8."""
        masked = redact(known.mask_text(text))
        data = masked.encode("utf-8", "replace")
        blocks = (data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))
        digest, size = self._keep(run_id, blocks)
        return Kept(sha256=digest, size=size, redacted=masked != text)

    def keep_bytes(
        self,
        run_id: str,
        data: bytes,
        media_type: str = "",
        known: KnownSecrets = NOTHING_KNOWN,
    ) -> Kept:
        """Keep these bytes, redacted if they are a text."""
        blocks = (data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))
        if not looks_like_text(data, media_type):
            return self._keep_bytes(run_id, blocks)
        return self._keep_masked(run_id, blocks, known)

    def keep_file(self, run_id: str, source: Source, known: KnownSecrets = NOTHING_KNOWN) -> Kept:
        """Keep a copy of a file, text redacted, or raise SourceRefusedError.

        An OSError is of the place where artifacts are kept, not of the file.
        """
        for _ in range(TRIES):
            with opened_beneath(source.root, source.path) as file:
                before = _version(file)
                self._check_size(source, os.fstat(file).st_size)
                kept = self._copy(run_id, source, file, known)
                if _version(file) == before:
                    return kept
        raise SourceRefusedError(
            f"{source.path} goes on changing while it is read; hand it in when it is finished"
        )

    def open(self, run_id: str, digest: str) -> Opened:
        """Open what was kept. FileNotFoundError when it is gone."""
        if not _DIGEST.fullmatch(digest):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), digest)
        with self._opened_folder(run_id) as folder:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return Opened(os.open(digest, flags, dir_fd=folder))

    def runs(self) -> list[str]:
        """Return the ids of the runs that have artifacts."""
        try:
            with os.scandir(self._root) as entries:
                return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def size_of(self, run_id: str) -> int:
        """Return how many bytes a run's artifacts take."""
        try:
            with self._opened_folder(run_id) as folder, os.scandir(folder) as entries:
                return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        except FileNotFoundError:
            return 0

    def delete_run(self, run_id: str) -> None:
        """Delete all artifacts of a run."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder(run_id))

    def sweep(self, run_id: str) -> None:
        """Delete what a process that ended had not finished."""
        with suppress(FileNotFoundError), self._opened_folder(run_id) as folder:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries]
            for name in names:
                if name.startswith(_DRAFT) and not name.startswith(self._mine):
                    os.unlink(name, dir_fd=folder)

    def _check_size(self, source: Source, size: int) -> None:
        if size > self._most:
            raise SourceRefusedError(
                f"{source.path} has {size} bytes, the most is {self._most}; split or compress it"
            )

    def _copy(self, run_id: str, source: Source, file: int, known: KnownSecrets) -> Kept:
        head = read_source(file, source.path, 0, _BLOCK)
        blocks = self._blocks(source, file)
        if not looks_like_text(head, source.media_type):
            return self._keep_bytes(run_id, blocks)
        return self._keep_masked(run_id, blocks, known)

    def _keep_bytes(self, run_id: str, blocks: Iterable[bytes]) -> Kept:
        digest, size = self._keep(run_id, blocks)
        return Kept(sha256=digest, size=size, is_text=False)

    def _keep_masked(self, run_id: str, blocks: Iterable[bytes], known: KnownSecrets) -> Kept:
        mask = Mask(known)
        digest, size = self._keep(run_id, mask.text(blocks))
        return Kept(sha256=digest, size=size, redacted=mask.changed)

    def _blocks(self, source: Source, file: int) -> Iterator[bytes]:
        position = 0
        while block := read_source(file, source.path, position, _BLOCK):
            position += len(block)
            self._check_size(source, position)
            yield block

    def _keep(self, run_id: str, blocks: Iterable[bytes]) -> tuple[str, int]:
        """Write it durably; return its digest and size. The same content again is the same file."""
        with self._made_folder(run_id) as folder:
            draft = f"{self._mine}{token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(draft, flags, 0o600, dir_fd=folder)
            try:
                digest, size = self._write(file, blocks)
                os.fsync(file)
                # What was there under this name may be damaged: the new one is whole.
                os.rename(draft, digest, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise
            finally:
                os.close(file)
            os.fsync(folder)
        return digest, size

    def _write(self, file: int, blocks: Iterable[bytes]) -> tuple[str, int]:
        digest, size = sha256(), 0
        self._claim(file)
        for block in blocks:
            self._claim(file, len(block))
            digest.update(block)
            size += len(block)
            view = memoryview(block)
            while view:
                view = view[os.write(file, view) :]
        return digest.hexdigest(), size

    def _claim(self, file: int, size: int = 0) -> None:
        disk = os.fstatvfs(file)
        reserve = self._reserve
        if reserve is None:
            reserve = min(RESERVE, disk.f_blocks * disk.f_frsize // _SMALL_SHARE)
        if disk.f_bavail * disk.f_frsize < reserve + size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._root))

    @contextmanager
    def _made_folder(self, run_id: str) -> Generator[int]:
        """Give the run's folder, made if it is not there."""
        _checked(run_id)
        with suppress(FileExistsError):
            self._root.mkdir(mode=0o700)
        root = os.open(self._root, _FOLDER_FLAGS)
        try:
            try:
                os.mkdir(run_id, 0o700, dir_fd=root)
                os.fsync(root)
            except FileExistsError:
                pass
            folder = os.open(run_id, _FOLDER_FLAGS, dir_fd=root)
        finally:
            os.close(root)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _opened_folder(self, run_id: str) -> Generator[int]:
        root = os.open(self._root, _FOLDER_FLAGS)
        try:
            folder = os.open(_checked(run_id), _FOLDER_FLAGS, dir_fd=root)
        finally:
            os.close(root)
        try:
            yield folder
        finally:
            os.close(folder)


def _checked(run_id: str) -> str:
    if not _PLAIN_NAME.fullmatch(run_id):
        raise ValueError(run_id)
    return run_id


def _version(file: int) -> tuple[int, int, int]:
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
