"""Builds a project as a release does, with the build backend that is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from tests.packaging.projects import Project


@dataclass(frozen=True, slots=True)
class Built:
    """The files of a release."""

    project: Project
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path

    def metadata(self) -> Message:
        files = contents(self.wheel)
        (text,) = (data for name, data in files.items() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(text.decode())


def build(project: Project, place: Path) -> Built:
    """Make both files of a release, and a wheel of its sdist alone."""
    _hatchling(project.folder, place, "sdist", "wheel")
    (sdist,) = place.glob("*.tar.gz")
    (wheel,) = place.glob("*.whl")
    subprocess.run(["tar", "-xzf", sdist, "-C", place], check=True)
    unpacked = place / sdist.name.removesuffix(".tar.gz")
    return Built(project, wheel, sdist, build_wheel(unpacked, place / "again"))


def build_wheel(folder: Path, place: Path) -> Path:
    _hatchling(folder, place, "wheel")
    (wheel,) = place.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    """Return every file of a wheel, by its path."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names(sdist: Path) -> set[str]:
    """Return the path of every file of an sdist, without the folder they are all in."""
    with tarfile.open(sdist) as archive:
        return {each.name.partition("/")[2] for each in archive if not each.isdir()}


def _hatchling(folder: Path, place: Path, *targets: str) -> None:
    chosen = [argument for target in targets for argument in ("-t", target)]
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *chosen, "-d", place],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
