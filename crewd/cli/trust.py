"""`crewd trust`: let a project's own files start programs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from crewd.catalog import Catalog, Source, load, root_of, trust
from crewd.paths import config_dir
from crewd.refusal import Refusal, refusing


@click.command
@click.argument("folder", metavar="[DIR]", default=".")
def command(folder: str) -> None:
    """Let the project of DIR start the programs its own files name, from now on.

    Agents and steps of a project that only use pi need no trust.
    """
    root = _project(folder)
    config = config_dir(os.environ)
    for line in _allowed(load(root, Path.home(), config)):
        click.echo(_harmless(line))
    with refusing("cannot write", config / "trusted"):
        is_new = trust(config, root)
    click.echo(f"{_harmless(str(root))} {'is trusted now' if is_new else 'was trusted before'}")


def _project(folder: str) -> Path:
    with refusing("cannot look at", Path(folder)):
        real = Path(folder).resolve(strict=True)
    if not real.is_dir():
        raise Refusal(f"{real} is no directory", hint="name the project: crewd trust DIR")
    return root_of(real)


def _allowed(catalog: Catalog) -> Iterator[str]:
    """Say what trust lets the project do as it is now."""
    said = [*_of_agents(catalog), *_of_steps(catalog)]
    if said:
        yield "its files may start these programs, and any they name later:"
        yield from sorted(said)
    else:
        yield "its files name no programs now; they may start any they name later"


def _of_agents(catalog: Catalog) -> Iterator[str]:
    for agent in catalog.agents.values():
        if agent.source is not Source.PROJECT:
            continue
        if agent.command:
            yield f"  {agent.file}: {shlex.join(agent.command)}"
        if agent.env_from:
            yield f"  {agent.file}: is given {', '.join(agent.env_from)}"


def _of_steps(catalog: Catalog) -> Iterator[str]:
    for workflow in catalog.workflows.values():
        if workflow.source is not Source.PROJECT:
            continue
        for step in workflow.steps:
            if step.command:
                yield f"  {workflow.file}:{step.line}: {shlex.join(step.command)}"


def _harmless(line: str) -> str:
    """Return the line so that nothing in it can hide or fake what a terminal shows."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
