"""Programs that workers are made of. None of them is needed by crewd itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from crewd.doctor.finding import Check, Finding, Place, info, ok
from crewd.workers.programs import INSTALL

_WANTED: Final = (*INSTALL, "git", "node")
_VERSION_SECONDS: Final = 5.0
_SHOWN_CHARACTERS: Final = 60


def programs(place: Place) -> Iterator[Finding]:
    """Find each on PATH and ask it for its version, all at the same time."""
    with ThreadPoolExecutor(len(_WANTED), "program") as pool:
        yield from pool.map(partial(_program, place), _WANTED)


def _program(place: Place, name: str) -> Finding:
    entries = place.env.get("PATH", "").split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if entry.startswith("/"))
    file = shutil.which(name, path=path)
    identity = f"program.{name}"
    if file is None:
        return info(
            id=identity,
            message=f"{name} is not on PATH; it is needed only by tasks that run it",
            command=INSTALL.get(name, ""),
            details={"path": path},
        )
    version = _version(place, file)
    details = {"file": file, "version": version}
    if version:
        text = version if version.startswith(name) else f"{name} {version}"
        return ok(id=identity, message=text, details=details)
    return info(
        id=identity,
        message=f"{file} does not tell its version within {_VERSION_SECONDS:g} s",
        command=f"{file} --version",
        details=details,
    )


def _version(place: Place, file: str) -> str:
    """Return the first line that says anything; empty when none comes in time, or it fails."""
    try:
        child = subprocess.Popen(  # noqa: S603 - what a worker would start
            [file, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(place.env),
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError:
        return ""
    with child:
        try:
            said = child.communicate(timeout=_VERSION_SECONDS)[0]
        except subprocess.TimeoutExpired:
            said = ""
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    lines = (line.strip() for line in said.splitlines())
    first = next(filter(None, lines), "")
    return first[:_SHOWN_CHARACTERS] if child.returncode == 0 else ""


CHECKS: Final[tuple[Check, ...]] = (programs,)
