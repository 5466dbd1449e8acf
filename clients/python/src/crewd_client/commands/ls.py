"""`crew ls` and `crew show`: runs as they are."""

from __future__ import annotations

from pathlib import Path

import click

from crewd_client.client import Client
from crewd_client.commands.board import OVER
from crewd_client.commands.exits import Exit
from crewd_client.commands.lines import progress_text
from crewd_client.commands.listing import Listing
from crewd_client.commands.pick import PAGE, pick_run
from crewd_client.commands.session import Session, json_option
from crewd_client.commands.terminal import (
    clean_block,
    put,
    put_json,
    put_table,
    seconds_between,
    shorten,
    span,
    word,
)
from crewd_client.json import to_json
from crewd_client.pages import list_runs, list_tasks
from crewd_client.v1.run_pb2 import Run, RunFilter, RunStatus
from crewd_client.v1.run_service_pb2 import GetRunRequest
from crewd_client.v1.task_pb2 import Task
from crewd_client.watch import watch_runs

_SHOWN = 20
_STATUSES = [
    name.removeprefix("RUN_STATUS_").lower() for name, number in RunStatus.items() if number
]
_TASK_HEADS = ("TASK", "STATUS", "TRY", "ELAPSED", "LAST")


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="All, not only the newest.")
@click.option("--cwd", metavar="DIR", help="Only runs of this directory.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(_STATUSES, case_sensitive=False),
    help="Only runs in this status; may be repeated.",
)
@click.option("--watch", is_flag=True, help="Print each run again whenever it changes.")
@json_option
@click.pass_obj
def ls(
    session: Session, /, *, everything: bool, watch: bool, as_json: bool, **narrow: object
) -> int:
    """List runs, unfinished ones first, then newest.

    Finished ones are shown until the list has 20 lines; -a shows them all.
    """
    wanted = _filter(**narrow)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    async def work(client: Client) -> int:
        if watch:
            return await _LISTING.follow(watch_runs(client, wanted), as_json=as_json)
        shown: list[Run] = []
        async for run in list_runs(client, wanted, page_size=PAGE if everything else 0):
            if not everything and len(shown) >= _SHOWN and run.status in OVER:
                break
            shown.append(run)
        _LISTING.put(shown, as_json=as_json)
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("run", required=False)
@json_option
@click.pass_obj
def show(session: Session, /, run: str | None, *, as_json: bool) -> int:
    """Show a run and its tasks; without RUN the newest of this directory."""

    async def work(client: Client) -> int:
        run_id = await pick_run(client, run)
        found = (await client.runs.GetRun(GetRunRequest(run_id=run_id))).run
        tasks = [task async for task in list_tasks(client, run_id, page_size=PAGE)]
        if as_json:
            put_json({"run": to_json(found), "tasks": [to_json(task) for task in tasks]})
        else:
            _put_run(found, tasks)
        return Exit.DONE

    return session.perform(work)


def _filter(cwd: str | None, statuses: tuple[str, ...]) -> RunFilter:
    return RunFilter(
        cwd="" if cwd is None else str(Path(cwd).resolve()),
        statuses=[RunStatus.Value(f"RUN_STATUS_{status.upper()}") for status in statuses],
    )


def _cells(run: Run) -> list[str]:
    total = sum(count for count in to_json(run.task_counts).values() if isinstance(count, int))
    return [
        run.id,
        word(run, "status"),
        f"{run.task_counts.completed}/{total}",
        str(run.open_ask_count or ""),
        span(seconds_between(run.create_time)),
        shorten(run.title, 60),
    ]


def _put_run(run: Run, tasks: list[Task]) -> None:
    said = run.status_message or run.status_reason
    reason = "" if said == word(run, "status") else shorten(said, 200)
    by = f" by {run.created_by}" if run.created_by else ""
    put(f"{run.id}  {word(run, 'status')}{': ' if reason else ''}{reason}")
    put(f"title:   {shorten(run.title, 200)}")
    put(f"in:      {run.workspace.cwd}")
    put(f"created: {run.create_time.ToJsonString()}{by}")
    if run.HasField("error"):
        put(f"error:   {shorten(run.error.message, 400)}")
    if run.open_ask_count:
        put(f"asks:    {run.open_ask_count} open, see `crew asks`")
    if tasks:
        put()
        put_table(_TASK_HEADS, [_task_cells(task) for task in tasks])
    if run.result.text:
        put()
        put(clean_block(run.result.text))
    if run.result.truncated:
        put(f"(cut; the whole is in {run.result.artifact_id}: crew artifacts {run.id})")


def _task_cells(task: Task) -> list[str]:
    end = task.end_time if task.HasField("end_time") else None
    elapsed = span(seconds_between(task.start_time, end)) if task.HasField("start_time") else ""
    last = task.error.message or task.status_message or progress_text(task.progress)
    return [
        task.id,
        word(task, "status"),
        str(task.attempt or ""),
        elapsed,
        shorten(last or task.result.text, 100),
    ]


_LISTING = Listing(("RUN", "STATUS", "TASKS", "ASKS", "AGE", "TITLE"), _cells, nothing="no runs")
