"""The files that describe agents, teams, workflows and skills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crewd.catalog import Severity as Gravity
from crewd.catalog import load, root_of
from crewd.doctor.finding import Check, Finding, Place, error, ok, quoted, warning

_MAKERS: Final = {Gravity.ERROR: error, Gravity.WARNING: warning}


def files(place: Place) -> Iterator[Finding]:
    """Read what a run that is created in this directory would be made from."""
    root = root_of(place.cwd) if place.cwd is not None else None
    found = load(root, place.home, place.config_dir)
    where = "" if place.cwd is None else f" {quoted(place.cwd)}"
    command = place.crew(f"validate{where}")
    for problem in found.problems:
        line = f":{problem.line}" if problem.line else ""
        fix = f" ({problem.fix})" if problem.fix else ""
        yield _MAKERS[problem.severity](
            id="catalog.problem",
            message=f"{problem.file}{line}: {problem.message}{fix}",
            command=command,
            details={"file": problem.file, "line": str(problem.line), "fix": problem.fix},
        )
    kinds = {
        "agents": len(found.agents),
        "teams": len(found.teams),
        "workflows": len(found.workflows),
        "skills": len(found.skills),
    }
    yield ok(
        id="catalog.read",
        message=", ".join(f"{count} {kind}" for kind, count in kinds.items()),
        command=command,
        details={kind: str(count) for kind, count in kinds.items()},
    )


CHECKS: Final[tuple[Check, ...]] = (files,)
