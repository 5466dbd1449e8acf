"""The two Python projects of this repository, and what they say of themselves."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.architecture.sources import ROOT

_FLOOR: Final = re.compile(r"([\w.-]+)\s*(?:>=|==)\s*([\w.]+)")


@dataclass(frozen=True, slots=True)
class Project:
    """`package`: the folder of its sources, of which a wheel holds every file."""

    folder: Path
    package: Path
    command: str

    @property
    def declared(self) -> dict[str, Any]:
        text = (self.folder / "pyproject.toml").read_text()
        project: dict[str, Any] = tomllib.loads(text)["project"]
        return project

    @property
    def name(self) -> str:
        return str(self.declared["name"])

    @property
    def stem(self) -> str:
        """Return the name as files have it."""
        return self.name.replace("-", "_")

    def floors(self) -> dict[str, str]:
        """Return the oldest version of each dependency that is said to do."""
        found = map(_FLOOR.match, self.declared["dependencies"])
        return {each[1]: each[2] for each in found if each is not None}

    def files(self) -> dict[str, bytes]:
        """Return every file of the sources, by its path in a wheel."""
        paths = (path for path in self.package.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.package.parent)): path.read_bytes()
            for path in paths
            if "__pycache__" not in path.parts
        }


DAEMON: Final = Project(ROOT, ROOT / "crewd", "crewd")
CLIENT: Final = Project(
    ROOT / "clients" / "python", ROOT / "clients" / "python" / "src" / "crewd_client", "crew"
)
PROJECTS: Final = (DAEMON, CLIENT)
