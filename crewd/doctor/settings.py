"""The user's own files for crewd: variables for workers, and trusted projects."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crewd.catalog.trust import FILE
from crewd.doctor.finding import Check, Finding, Place, error, ok, quoted, warning
from crewd.workers.env_file import EnvFileError, read_env_file

_WRITE: Final = 0o022


def env_file(place: Place) -> Iterator[Finding]:
    file = place.config_dir / "env"
    try:
        names = sorted(read_env_file(file))
    except EnvFileError as problem:
        yield error(
            id="env_file.usable",
            message=f"{problem}; a task that names a variable of it cannot start",
            command=problem.command,
            details={"path": str(file)},
        )
        return
    if file.exists():
        yield ok(
            id="env_file.usable",
            message=f"{file} has {len(names)} variables",
            details={"path": str(file), "names": " ".join(names)},
        )


def trusted(place: Place) -> Iterator[Finding]:
    file = place.config_dir / FILE
    if not file.exists():
        return
    if stat.S_IMODE(file.stat().st_mode) & _WRITE:
        yield error(
            id="trusted.permissions",
            message=f"{file} can be changed by others, so no project is trusted; look through it",
            command=f"chmod 600 {quoted(file)}",
        )
    roots = [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    gone = [root for root in roots if not Path(root).is_dir()]
    for root in gone:
        yield warning(
            id="trusted.missing",
            message=f"the trusted project {root} is not there any more; whatever comes to its "
            "place would be trusted",
            command=f"sed -i {quoted('/^' + _pattern(root) + '$/d')} {quoted(file)}",
            details={"project": root},
        )
    if not gone:
        yield ok(id="trusted.missing", message=f"{len(roots)} trusted projects, all there")


def _pattern(text: str) -> str:
    """Return what stands for a text in a regular expression of sed."""
    return "".join(f"\\{c}" if c in r"\/.*[]^$" else c for c in text)


CHECKS: Final[tuple[Check, ...]] = (env_file, trusted)
