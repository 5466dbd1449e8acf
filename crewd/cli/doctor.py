"""`crewd doctor`: what is wrong, and what mends it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from crewd.cli.options import echo_json, state_dir_option
from crewd.doctor.examine import examine
from crewd.doctor.finding import Finding, Place, Severity, error, warning
from crewd.instance import holder
from crewd.refusal import Exit, Refusal
from crewd_client import locate
from crewd_client.locate import LocateError, Location

_HEADS: Final = {
    Severity.ERROR: "errors",
    Severity.WARNING: "warnings",
    Severity.INFO: "worth knowing",
    Severity.OK: "well",
}


@click.command
@state_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, all checks.")
@click.option("--all", "with_ok", is_flag=True, help="Print what is well too.")
@click.option("--deep", is_flag=True, help="Read the whole database, measure the disk.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Look at the project of this directory too. Default: the current one.",
)
def command(
    state_dir: str | None,
    *,
    as_json: bool,
    with_ok: bool,
    deep: bool,
    cwd: Path | None,
) -> None:
    """Look for what is wrong and tell what mends it. Exits with 1 if there are errors.

    Works with and without a running daemon, and changes nothing.
    """
    place, location = _place(state_dir, deep=deep, cwd=cwd or Path.cwd())
    found = [*examine(place), *_asked(place, location)]
    found.sort(key=lambda finding: tuple(Severity).index(finding.severity))
    if as_json:
        for finding in found:
            echo_json(asdict(finding))
    else:
        click.echo("\n".join(_lines(found, with_ok=with_ok)))
    failed = found[0].severity is Severity.ERROR
    click.get_current_context().exit(Exit.FAILED if failed else Exit.DONE)


def _place(state_dir: str | None, *, deep: bool, cwd: Path) -> tuple[Place, Location | None]:
    env = dict(os.environ)
    location, problem = None, ""
    try:
        location = locate.find(env, state_dir=state_dir)
    except LocateError as unsafe:
        problem = str(unsafe)
    place = Place(
        env=env,
        state_dir=locate.state_dir(env, state_dir),
        socket=location.socket if location is not None else None,
        socket_problem=problem,
        cwd=cwd,
        deep=deep,
    )
    return place, location


def _asked(place: Place, location: Location | None) -> Iterator[Finding]:
    """Ask the daemon itself, if there is one."""
    running = holder(place.paths.lock)
    if location is None or running is None:
        return
    # gRPC is loaded only now: what is wrong with its package has been told already.
    try:
        from crewd import contact  # noqa: PLC0415
    except ImportError as problem:
        yield error(id="daemon.answers", message=f"the daemon cannot be asked: {problem}")
        return
    try:
        contact.server_info(location, contact.ANSWER_TIMEOUT)
        told = contact.diagnose(location, contact.ANSWER_TIMEOUT)
    except contact.NotReachedError as problem:
        yield error(
            id="daemon.answers",
            message=f"the daemon, pid {running.pid or 'unknown'}, does not answer: {problem}; its "
            f"log is {place.paths.log}",
            command=f"kill -9 {running.pid}; {place.crewd('ensure')}" if running.pid else "",
        )
    except Refusal as refusal:
        yield warning(
            id="daemon.answers",
            message=f"the daemon did not tell how it is: {refusal.message}",
            command="crewd where",
        )
    else:
        yield from told


def _lines(found: Sequence[Finding], *, with_ok: bool) -> Iterator[str]:
    for severity, head in _HEADS.items():
        group = [finding for finding in found if finding.severity is severity]
        if group and (with_ok or severity is not Severity.OK):
            yield f"{head}:"
            yield from _group(group)
    well = sum(finding.severity is Severity.OK for finding in found)
    if not with_ok:
        yield f"{well} checks found all well (--all lists them)"


def _clean(text: str) -> str:
    """Make one harmless line of a text; a worker may have written part of it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _group(found: Iterable[Finding]) -> Iterator[str]:
    for finding in found:
        yield f"  {finding.id}: {_clean(finding.message)}"
        if finding.command:
            yield f"    $ {_clean(finding.command)}"
