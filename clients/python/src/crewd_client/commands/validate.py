"""`crew validate`: all that is wrong with the files of a catalog."""

from __future__ import annotations

import click

from crewd_client.client import Client
from crewd_client.commands.catalog import directory
from crewd_client.commands.exits import Exit
from crewd_client.commands.session import Session, json_option
from crewd_client.commands.terminal import clean, note, put, put_json, word
from crewd_client.json import to_json
from crewd_client.v1.catalog_pb2 import CATALOG_SEVERITY_ERROR, CatalogProblem
from crewd_client.v1.catalog_service_pb2 import ValidateCatalogRequest


@click.command()
@click.argument("where", metavar="[DIR]", required=False)
@json_option
@click.pass_obj
def validate(session: Session, /, where: str | None, *, as_json: bool) -> int:
    """Tell what is wrong with agents, teams, workflows and skills, of DIR and of the user.

    The exit code is 2 if a file cannot be used, and 0 if there are only warnings.
    """
    cwd = directory(where)

    async def work(client: Client) -> int:
        found = await client.catalog.ValidateCatalog(ValidateCatalogRequest(cwd=cwd))
        for problem in found.problems:
            if as_json:
                put_json(to_json(problem))
            else:
                put(_line(problem))
        if found.omitted:
            note(f"and {found.omitted} more")
        errors = sum(problem.severity == CATALOG_SEVERITY_ERROR for problem in found.problems)
        if not as_json:
            note(_summary(found.project_root, errors, len(found.problems) - errors))
        return Exit.USAGE if errors else Exit.DONE

    return session.perform(work, start=True)


def _line(problem: CatalogProblem) -> str:
    fix = f"; {clean(problem.fix)}" if problem.fix else ""
    place = f"{clean(problem.file)}:{problem.line}"
    return f"{place}: {word(problem, 'severity')}: {clean(problem.message)}{fix}"


def _summary(root: str, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return f"{root}: nothing is wrong"
    return f"{root}: {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, name: str) -> str:
    return f"1 {name}" if number == 1 else f"{number} {name}s"
