"""Room on the disk of the state directory, what takes it, and whether the disk can be trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, error, info, ok, quoted, warning
from crewd.host.disk import RESERVE_BYTES

_MIB: Final = 1 << 20
_COMFORT: Final = 512 * _MIB
_FILES_LEFT: Final = 1000
_REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "afs"})
_WRITES: Final = 20
_SLOW_SECONDS: Final = 0.02
_BLOCK: Final = b"\0" * 4096


def space(place: Place) -> Iterator[Finding]:
    disk = os.statvfs(_there(place.state_dir))
    yield judge_space(disk.f_bavail * disk.f_frsize, place.state_dir)
    if disk.f_files and disk.f_favail < _FILES_LEFT:
        yield warning(
            id="disk.files",
            message=f"the disk of {place.state_dir} has room for {disk.f_favail} more files only",
            command=f"df -i {quoted(place.state_dir)}",
            details={"files": str(disk.f_favail)},
        )


def judge_space(free: int, state_dir: Path) -> Finding:
    """Say what so many free bytes mean."""
    details = {"free_bytes": str(free), "reserve_bytes": str(RESERVE_BYTES)}
    text = f"{free / _MIB:.0f} MiB are free on the disk of {state_dir}"
    command = f"df -h {quoted(state_dir)}"
    if free < RESERVE_BYTES:
        return error(
            id="disk.space",
            message=f"{text}: below {RESERVE_BYTES // _MIB} MiB workers' output waits, and soon no "
            "run is taken; free some space",
            command=command,
            details=details,
        )
    if free < _COMFORT:
        return warning(
            id="disk.space",
            message=f"{text}: crewd holds back below {RESERVE_BYTES // _MIB} MiB",
            command=command,
            details=details,
        )
    return ok(id="disk.space", message=text, details=details)


def usage(place: Place) -> Iterator[Finding]:
    """Tell what the state directory holds, by kind."""
    root = place.state_dir
    if not root.is_dir():
        return
    kinds = {
        "database": sum(_size(file) for file in root.glob(f"{place.paths.database.name}*")),
        "transcripts": _size_below(place.paths.transcripts),
        "artifacts": _size_below(root / "artifacts"),
        "host": _size_below(root / "host"),
        "logs": sum(_size(file) for file in root.glob("*.log*")),
    }
    parts = ", ".join(f"{kind} {size / _MIB:.1f}" for kind, size in kinds.items())
    yield ok(
        id="disk.usage",
        message=f"the state directory takes {sum(kinds.values()) / _MIB:.1f} MiB: {parts}",
        command=place.crew("ls -a"),
        details={kind: str(size) for kind, size in kinds.items()},
    )


def filesystem(place: Place) -> Iterator[Finding]:
    mounts = place.system / "proc" / "mounts"
    kind = _kind_of(_there(place.state_dir).resolve(), mounts.read_text(errors="replace"))
    if kind in _REMOTE:
        yield error(
            id="disk.filesystem",
            message=f"{place.state_dir} is on a file system of another machine ({kind}), where "
            "neither locks nor the database are safe; name a local place",
            command="export CREWD_STATE_DIR=/var/tmp/crewd-$(id -u)",
            details={"kind": kind},
        )
    elif kind:
        yield ok(
            id="disk.filesystem", message=f"the disk has a local {kind}", details={"kind": kind}
        )


def sync(place: Place) -> Iterator[Finding]:
    """Measure what every commit waits for."""
    if not place.deep:
        return
    times: list[float] = []
    with TemporaryFile(dir=_there(place.state_dir)) as file:
        for _ in range(_WRITES):
            file.write(_BLOCK)
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    middle = sorted(times)[_WRITES // 2]
    details = {"median_ms": f"{middle * 1000:.2f}", "worst_ms": f"{max(times) * 1000:.2f}"}
    text = f"a write is safe on the disk after {middle * 1000:.1f} ms"
    if middle > _SLOW_SECONDS:
        yield info(
            id="disk.sync",
            message=f"{text}: every event waits that long; a local solid state disk takes less",
            details=details,
        )
    else:
        yield ok(id="disk.sync", message=text, details=details)


def _there(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _size_below(folder: Path) -> int:
    return sum(_size(Path(root, name)) for root, _, names in os.walk(folder) for name in names)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0


def _kind_of(path: Path, mounts: str) -> str:
    """Return the file system of the mount point that is nearest above."""
    found, kind = -1, ""
    for line in mounts.splitlines():
        words = line.split(" ")
        point = words[1].encode().decode("unicode_escape") if len(words) > 2 else ""  # noqa: PLR2004
        if point and path.is_relative_to(point) and len(point) >= found:
            found, kind = len(point), words[2]
    return kind


CHECKS: Final[tuple[Check, ...]] = (space, usage, filesystem, sync)
