"""`crew run`: submit a run and follow it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal, refusal_of, untold
from crewd_client.commands.follow import Manner, follow
from crewd_client.commands.run_file import RunFile, load_run_file, parse_run_file
from crewd_client.commands.session import Session, duration, json_option, read_stdin
from crewd_client.commands.terminal import note, put, put_json
from crewd_client.errors import CrewdError
from crewd_client.json import to_json
from crewd_client.v1.ask_pb2 import (
    ON_TIMEOUT_CONTINUE,
    ON_TIMEOUT_DECLINE,
    ON_TIMEOUT_DEFAULT_OPTION,
    ON_TIMEOUT_FAIL_TASK,
    ON_TIMEOUT_WAIT,
    OnTimeout,
)
from crewd_client.v1.run_service_pb2 import ClientEnv, CreateRunRequest
from crewd_client.v1.spec_pb2 import RunSpec

_ON_ASK: dict[str, OnTimeout.ValueType] = {
    "wait": ON_TIMEOUT_WAIT,
    "fail": ON_TIMEOUT_FAIL_TASK,
    "decline": ON_TIMEOUT_DECLINE,
    "default": ON_TIMEOUT_DEFAULT_OPTION,
    "continue": ON_TIMEOUT_CONTINUE,
}


DEFAULT_TEAM = "default"
# A request id and what frames the request come on top.
_REQUEST_BYTES = (16 << 20) - 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What was typed after `crew run`."""

    goal: str | None
    team: str
    workflow: str
    agent: str
    file: str | None
    cwd: str | None
    detach: bool
    dry_run: bool
    request_id: str
    unattended: bool
    on_ask: str | None
    timeout: timedelta | None
    wait_timeout: timedelta | None
    cancel_on_interrupt: bool
    as_json: bool


@click.command()
@click.argument("goal", required=False)
@click.option("--team", default="", metavar="T", help="Who does it; without more: default.")
@click.option("--workflow", default="", metavar="W", help="The steps it is done in.")
@click.option("--agent", default="", metavar="A", help="One agent does it alone.")
@click.option("--file", metavar="RUN.YAML", help="What to do; - reads stdin.")
@click.option("--cwd", metavar="DIR", help="Where the workers work. Default: here.")
@click.option("--detach", is_flag=True, help="Print the run's id and return at once.")
@click.option("--dry-run", is_flag=True, help="Check everything, start nothing.")
@click.option("--request-id", default="", metavar="ID", help="Makes the command safe to repeat.")
@click.option("--unattended", is_flag=True, help="Nobody will answer: ask nobody, see --on-ask.")
@click.option(
    "--on-ask",
    type=click.Choice(list(_ON_ASK)),
    help="What becomes of questions nobody answers; with --unattended at once, by default fail.",
)
@click.option("--timeout", callback=duration, metavar="T", help="The longest the run may take.")
@click.option("--wait-timeout", callback=duration, metavar="T", help="Follow no longer than this.")
@click.option("--cancel-on-interrupt", is_flag=True, help="Ctrl-C cancels instead of leaving.")
@json_option
@click.pass_obj
def run(session: Session, /, **typed: object) -> int:
    """Start a run and follow it to its end.

    GOAL takes the place of the file's goal. The result is printed on stdout, progress on stderr.
    Ctrl-C leaves the run to itself; twice within 2 s cancels it.
    """
    options = _Options(**typed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    file = _load(options)
    _complete(file.spec, options)
    request = CreateRunRequest(
        request_id=options.request_id,
        validate_only=options.dry_run,
        spec=file.spec,
        file=_file(options),
        env=ClientEnv(path=_absolute_entries(os.environ.get("PATH", ""))),
    )

    _check_size(request)

    async def submit(client: Client) -> int:
        return await _submit(client, request, file, options)

    return session.perform(submit, start=True)


async def _submit(
    client: Client, request: CreateRunRequest, file: RunFile, options: _Options
) -> int:
    try:
        created = (await client.runs.CreateRun(request)).run
    except CrewdError as error:
        raise _placed(error, file) from None
    if options.dry_run or options.detach:
        count = created.task_counts.queued
        tasks = "1 task" if count == 1 else f"{count} tasks"
        valid = f"valid: {tasks} in {request.spec.workspace.cwd}"
        if options.as_json:
            put_json({"run": to_json(created)})
        else:
            put(valid if options.dry_run else created.id)
        return Exit.DONE
    if not options.as_json:
        note(f"{created.id} created")
    manner = Manner(
        as_json=options.as_json,
        prompt=not options.unattended and not options.as_json,
        cancel_on_interrupt=options.cancel_on_interrupt,
        wait_timeout=options.wait_timeout,
    )
    return await follow(client, created.id, manner)


def _load(options: _Options) -> RunFile:
    named = options.team or options.workflow or options.agent
    if options.file is None:
        if not (options.goal or "").strip():
            hint = 'crew run "what to do" [--team T], or crew run --file run.yaml'
            raise Refusal("what is to be done?", hint=hint)
        spec = RunSpec(workflow=options.workflow, agent=options.agent)
        spec.team = options.team or ("" if named else DEFAULT_TEAM)
        return RunFile("", spec, {})
    if named:
        raise Refusal("--file says what is done; --team, --workflow and --agent belong into it")
    if options.file == "-":
        return parse_run_file(read_stdin(), "<stdin>")
    return load_run_file(Path(options.file))


def _file(options: _Options) -> str:
    """Give the file's own name, wherever it was named from; a name that is no text is not told."""
    if options.file in {None, "-"}:
        return ""
    name = str(Path(str(options.file)).resolve())
    return name if _is_text(name) else ""


def _check_size(request: CreateRunRequest) -> None:
    size = request.ByteSize()
    if size > _REQUEST_BYTES:
        message = f"the run is too large: {size} bytes; the daemon takes {_REQUEST_BYTES}"
        hint = "put long texts into files that the workers read"
        raise Refusal(message, hint=hint, detail={"reason": "REQUEST_TOO_LARGE"})


def _complete(spec: RunSpec, options: _Options) -> None:
    """Put what was typed over what the file says."""
    if options.goal is not None:
        spec.goal = options.goal
    spec.workspace.cwd = str(_cwd(spec, options))
    if options.timeout is not None:
        spec.limits.max_duration.FromTimedelta(options.timeout)
    if options.on_ask is not None or options.unattended:
        spec.asks.on_timeout = _ON_ASK[options.on_ask or "fail"]
    if options.unattended and spec.asks.on_timeout != ON_TIMEOUT_WAIT:
        spec.asks.timeout.FromTimedelta(timedelta(0))


def _cwd(spec: RunSpec, options: _Options) -> Path:
    if options.cwd is not None:
        return Path(options.cwd).resolve()
    if not spec.workspace.cwd or options.file in {None, "-"}:
        return Path(spec.workspace.cwd).resolve()
    # What a file says is meant from where the file is.
    base = Path(str(options.file)).resolve().parent
    return (base / Path(spec.workspace.cwd).expanduser()).resolve()


def _absolute_entries(path: str) -> str:
    # A name that is not UTF-8 cannot be told to the daemon.
    return ":".join(entry for entry in path.split(":") if entry.startswith("/") and _is_text(entry))


def _is_text(path: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in path)


def _placed(error: CrewdError, file: RunFile) -> Refusal:
    """Say on which line of the file the daemon sees what is wrong."""
    refusal, more = refusal_of(error), untold(error)
    told = [each.field for each in error.violations if each not in more]
    place = file.place_of_field(told[0]) if told else None
    if error.reason == "GRAPH_CYCLE":
        place = file.place_of_task(error.metadata.get("path", "").partition(" ")[0]) or place
    lines = [str(error) if place is None else f"{place}: {error}"]
    for violation in more:
        at = file.place_of_field(violation.field)
        said = f"{violation.field}: {violation.description}"
        lines.append(said if at is None else f"{at}: {said}")
    return Refusal("\n".join(lines), hint=refusal.hint, code=refusal.code, detail=refusal.detail)
