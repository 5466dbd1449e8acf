"""All files of a catalog, merged: a project adds to what is built in, a user may replace it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from crewd.catalog import agents, files, skills, teams, workflows
from crewd.catalog.checks import checked
from crewd.catalog.files import Found, Place
from crewd.catalog.values import (
    Agent,
    Catalog,
    Problem,
    Severity,
    Skill,
    Source,
    Team,
    Workflow,
)

BUILTIN: Final = Path(__file__).parent / "builtin"
CACHED_FILES: Final = 512
"""Files kept parsed."""
_MARKS: Final = (".crew", ".git")

T = TypeVar("T", bound="Agent | Team | Workflow | Skill")


def root_of(cwd: Path) -> Path:
    """Return the project a directory is in: the nearest above with a `.crew` or `.git`, or it."""
    return next((f for f in (cwd, *cwd.parents) if any((f / m).exists() for m in _MARKS)), cwd)


def load(project_root: Path | None, home: Path, config_dir: Path) -> Catalog:
    """Read everything. Blocks; whatever the files hold, it returns what can be used of them."""
    where = _Where(project_root, home, config_dir)
    found_agents = _gathered(_AGENTS, where)
    found_teams = _gathered(_TEAMS, where)
    found_workflows = _gathered(_WORKFLOWS, where)
    found_skills = _gathered(_SKILLS, where)
    gathered = (found_agents, found_teams, found_workflows, found_skills)
    catalog = Catalog(
        agents=found_agents.items,
        teams=found_teams.items,
        workflows=found_workflows.items,
        skills=found_skills.items,
        problems=[problem for each in gathered for problem in each.problems],
        places={each.kind: each.places for each in gathered},
    )
    return checked(catalog)


class CacheUse(NamedTuple):
    """Files that were found parsed, that had to be parsed, and that are kept parsed now."""

    hits: int
    misses: int
    files: int


@dataclass(frozen=True, slots=True)
class _Where:
    project: Path | None
    home: Path
    config: Path


@dataclass(frozen=True, slots=True)
class _Kind(Generic[T]):
    name: str
    parse: Callable[[Found], tuple[T | None, list[Problem]]]
    project: Sequence[str]
    """Folders within a project, the least important first; `user` likewise, within the home."""
    user: Sequence[str]
    is_file: Callable[[str], bool]
    suffix: str = ".md"
    within: str = ""
    """What of a folder's entry is read; empty: the entry itself."""


def _is_agent(name: str) -> bool:
    return name.endswith(".md") and not name.startswith(".")


def _is_team(name: str) -> bool:
    return name.endswith(teams.SUFFIX) and not name.startswith(".")


def _is_workflow(name: str) -> bool:
    return name.endswith(workflows.SUFFIX) and not name.startswith(".")


def _is_folder(name: str) -> bool:
    return not name.startswith(".")


_AGENTS: Final = _Kind(
    "agents",
    agents.parse,
    (".pi/agents", ".claude/agents", ".crew/agents"),
    (".pi/agent/agents", ".claude/agents"),
    _is_agent,
)
_TEAMS: Final = _Kind("teams", teams.parse, (".crew", ".crew/teams"), (), _is_team, teams.SUFFIX)
_WORKFLOWS: Final = _Kind(
    "workflows",
    workflows.parse,
    (".crew", ".crew/workflows"),
    (),
    _is_workflow,
    workflows.SUFFIX,
)
_SKILLS: Final = _Kind(
    "skills",
    skills.parse,
    (".pi/skills", ".agents/skills", ".claude/skills", ".crew/skills"),
    (".pi/agent/skills", ".claude/skills"),
    _is_folder,
    within=skills.FILE,
)


@dataclass(frozen=True, slots=True)
class _Gathered(Generic[T]):
    kind: str
    items: dict[str, T]
    problems: list[Problem]
    places: tuple[str, ...]


def _gathered(kind: _Kind[T], where: _Where) -> _Gathered[T]:
    """Read the places in turn; of two things of one name the later one counts."""
    user = _user_places(kind, where)
    taken = {place.folder for place in user}
    project = [place for place in _project_places(kind, where) if place.folder not in taken]
    items: dict[str, T] = {}
    problems: list[Problem] = []
    builtin: _Read[T] = _builtin(kind)
    theirs, own = ([_read(kind, place) for place in places] for places in (project, user))
    for read in (*theirs, builtin, *own):
        problems += read.problems
        for item in read.items:
            before = items.get(item.name)
            if before is not None and _is_news(before, item):
                problems.append(_shadowed(before, item))
            items[item.name] = item
    places = (*(files.spelled(p.folder) for p in (*project, *user)), "builtin")
    return _Gathered(kind.name, items, problems, places)


@dataclass(frozen=True, slots=True)
class _Read(Generic[T]):
    items: list[T]
    problems: list[Problem]


def _project_places(kind: _Kind[T], where: _Where) -> list[Place]:
    root = where.project
    if root is None:
        return []
    return [
        Place(root / folder, Source.PROJECT, root, foreign=not folder.startswith(".crew"))
        for folder in kind.project
    ]


def _user_places(kind: _Kind[T], where: _Where) -> list[Place]:
    home = where.home
    return [
        *(Place(home / folder, Source.USER, home, foreign=True) for folder in kind.user),
        Place(where.config / kind.name, Source.USER, where.config),
    ]


@cache
def _builtin(kind: _Kind[T]) -> _Read[T]:
    folder = BUILTIN / kind.name
    return _read(kind, Place(folder, Source.BUILTIN, folder))


@lru_cache(maxsize=CACHED_FILES)
def _parsed(kind: _Kind[T], found: Found) -> tuple[T | None, list[Problem]]:
    """Parse a file once for as long as its text stays the same. The list is not to be changed."""
    return kind.parse(found)


def cache_use() -> CacheUse:
    """Return what reading the same files again and again has cost so far in this process."""
    use = _parsed.cache_info()
    return CacheUse(hits=use.hits, misses=use.misses, files=use.currsize)


def _read(kind: _Kind[T], place: Place) -> _Read[T]:
    names, problems = files.names_in(place.folder, kind.is_file)
    problems += _misnamed(kind, place)
    items: list[T] = []
    room = files.FOLDER_CHARACTERS
    for name in names:
        path = place.folder / name / kind.within
        if kind.within and not files.may_be(path):
            continue
        found = files.read(path, place)
        if isinstance(found, Problem):
            problems.append(found)
            continue
        room -= len(found.text)
        if room < 0:
            problems.append(files.too_much(place.folder))
            break
        item, told = _parsed(kind, found)
        problems += told
        if item is not None:
            items.append(item)
    return _Read(items, problems)


def _misnamed(kind: _Kind[T], place: Place) -> list[Problem]:
    """Tell of files in a folder of teams or workflows that are not read for their names."""
    if place.folder.name != kind.name or kind.suffix == ".md":
        return []
    names, _ = files.names_in(place.folder, lambda n: n.endswith(".md") and not kind.is_file(n))
    return [
        Problem(
            files.spelled(place.folder / name),
            1,
            Severity.WARNING,
            "is not read: its name does not say what it is",
            f"rename it to {name.removesuffix('.md').partition('.')[0]}{kind.suffix}",
        )
        for name in names
    ]


def _is_news(before: T, after: T) -> bool:
    """Tell whether it needs to be said that one replaces the other: a user does so on purpose."""
    return not (before.source is Source.BUILTIN and after.source is Source.USER)


def _shadowed(before: T, after: T) -> Problem:
    if after.source is Source.BUILTIN:
        message = f"it is not used: a project cannot replace the built-in {before.name!r}"
    else:
        message = f"it is not used: {after.file} has the name {before.name!r} too"
    return Problem(before.file, before.line, Severity.WARNING, message, "give it another name")
