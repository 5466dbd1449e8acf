"""Directories and programs of a run, looked up once when it is created. Blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from os.path import normpath
from pathlib import Path

from crewd.core.errors import CrewdError, Reason, Violation
from crewd.core.spec import RunSpec, TaskSpec
from crewd.workers.programs import INSTALL


def in_directory(spec: RunSpec) -> RunSpec:
    """Return the spec with the directory and the project it is about. CWD_INVALID."""
    cwd = _directory(spec.cwd)
    return replace(spec, cwd=cwd, project_root=project_root(cwd))


def resolved(spec: RunSpec) -> RunSpec:
    """Return the spec with absolute directories and programs of its tasks. WORKER_NOT_FOUND."""
    search = _Search(spec.path)
    tasks = tuple(search.task(task, index, spec.cwd) for index, task in enumerate(spec.tasks))
    search.refuse()
    return replace(spec, tasks=tasks)


def project_root(cwd: str) -> str:
    """Return the nearest directory above that has a repository; empty when none has."""
    for folder in (Path(cwd), *Path(cwd).parents):
        if (folder / ".git").exists():
            return str(folder)
    return ""


def _directory(cwd: str) -> str:
    if not cwd:
        problem = "required: the directory the workers start in"
    elif "\0" in cwd or not cwd.startswith("/"):
        problem = f"{cwd!r} is not absolute"
    elif not Path(cwd).is_dir():
        problem = f"{cwd!r} is no directory" if Path(cwd).exists() else f"{cwd!r} does not exist"
    else:
        return normpath(cwd)
    raise CrewdError(
        Reason.CWD_INVALID,
        f"workspace.cwd: {problem}",
        violations=[Violation("workspace.cwd", problem)],
        cwd=cwd,
    )


class _Search:
    """Finds programs, each name once, and remembers which are not there."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folders: Sequence[str] = path.split(os.pathsep) if path else ()
        self._known: dict[str, str] = {}
        self._missing: list[tuple[TaskSpec, Violation]] = []

    def task(self, task: TaskSpec, index: int, cwd: str) -> TaskSpec:
        cwd = _joined(cwd, task.cwd)
        if not task.command:
            return replace(task, cwd=cwd)
        program = task.command[0]
        executable = self._in_folder(task, cwd) if "/" in program else self._in_path(program)
        if not executable:
            where = f"{cwd} (its directory)" if "/" in program else f"PATH {self._path!r}"
            hint = f"; to install it: {INSTALL[program]}" if program in INSTALL else ""
            problem = f"no program {program!r} in {where}{hint}"
            self._missing.append((task, Violation(f"tasks[{index}].command", problem)))
        return replace(task, cwd=cwd, executable=executable)

    def refuse(self) -> None:
        if self._missing:
            task, violation = self._missing[0]
            raise CrewdError(
                Reason.WORKER_NOT_FOUND,
                f"task {task.id}: {violation.description}",
                violations=[violation for _, violation in self._missing],
                task_id=task.id,
                command=task.command[0],
                path=self._path,
            )

    def _in_folder(self, task: TaskSpec, cwd: str) -> str:
        """Return the program; it may still be made by a task that comes before."""
        file = _joined(cwd, task.command[0])
        return file if task.depends_on or _is_executable(file) else ""

    def _in_path(self, program: str) -> str:
        found = self._known.get(program)
        if found is None:
            files = (f"{folder}/{program}" for folder in self._folders)
            found = next(filter(_is_executable, files), "")
            self._known[program] = found
        return found


def _joined(folder: str, path: str) -> str:
    return normpath(Path(folder) / path)


def _is_executable(file: str) -> bool:
    return Path(file).is_file() and os.access(file, os.X_OK)
