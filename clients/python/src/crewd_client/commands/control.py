"""The commands that change runs: cancel, resume, retry, resolve, rm."""

from __future__ import annotations

import click

from crewd_client.client import Client
from crewd_client.commands.board import OVER
from crewd_client.commands.exits import Exit
from crewd_client.commands.follow import end_of
from crewd_client.commands.lines import survivors_text
from crewd_client.commands.pick import pick_run
from crewd_client.commands.session import Session, json_option
from crewd_client.commands.terminal import note, put, put_json, word
from crewd_client.json import to_json
from crewd_client.v1.run_pb2 import Run
from crewd_client.v1.run_service_pb2 import CancelRunRequest, DeleteRunRequest, ResumeRunRequest
from crewd_client.v1.run_task_pb2 import (
    RESOLUTION_ACCEPT,
    RESOLUTION_FAIL,
    RESOLUTION_SKIP,
    ResolveTaskRequest,
    RetryTasksRequest,
)

_RESOLUTIONS = {
    "accept": RESOLUTION_ACCEPT,
    "fail": RESOLUTION_FAIL,
    "skip": RESOLUTION_SKIP,
}


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--force", is_flag=True, help="Kill at once; end the run even with survivors.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the workers are gone.")
@json_option
@click.pass_obj
def cancel(
    session: Session, /, runs: tuple[str, ...], *, force: bool, no_wait: bool, as_json: bool
) -> int:
    """End runs, and wait until their workers are proven gone."""

    async def work(client: Client) -> int:
        begun: list[Run] = []
        for run_id in [await pick_run(client, run) for run in runs]:
            request = CancelRunRequest(run_id=run_id, force=force)
            begun.append((await client.runs.CancelRun(request)).run)
        for run in begun:
            await _cancelled(client, run, wait=not no_wait, as_json=as_json)
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("run", required=False)
@json_option
@click.pass_obj
def resume(session: Session, /, run: str | None, *, as_json: bool) -> int:
    """Let a blocked or ended run go on: all that is not completed runs again."""

    async def work(client: Client) -> int:
        request = ResumeRunRequest(run_id=await pick_run(client, run))
        _put_run((await client.runs.ResumeRun(request)).run, as_json=as_json)
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("run")
@click.argument("tasks", nargs=-1, metavar="[TASK...]")
@json_option
@click.pass_obj
def retry(session: Session, /, run: str, tasks: tuple[str, ...], *, as_json: bool) -> int:
    """Run tasks again; without TASK everything that is not completed."""

    async def work(client: Client) -> int:
        request = RetryTasksRequest(run_id=await pick_run(client, run), task_ids=tasks)
        _put_run((await client.runs.RetryTasks(request)).run, as_json=as_json)
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("run")
@click.argument("task")
@click.argument("decision", type=click.Choice(list(_RESOLUTIONS)))
@click.argument("note", default="", required=False)
@json_option
@click.pass_obj
def resolve(session: Session, /, run: str, task: str, *, as_json: bool, **typed: str) -> int:
    """Decide about a task that needs attention."""

    async def work(client: Client) -> int:
        request = ResolveTaskRequest(
            run_id=await pick_run(client, run),
            task_id=task,
            resolution=_RESOLUTIONS[typed["decision"]],
            note=typed["note"],
        )
        resolved = (await client.runs.ResolveTask(request)).task
        if as_json:
            put_json({"task": to_json(resolved)})
        else:
            put(f"{resolved.id} {word(resolved, 'status')}")
        return Exit.DONE

    return session.perform(work)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@json_option
@click.pass_obj
def rm(session: Session, /, runs: tuple[str, ...], *, as_json: bool) -> int:
    """Delete runs that are over, with all that crewd keeps of them. Your own files stay."""

    async def work(client: Client) -> int:
        for run_id in [await pick_run(client, run) for run in runs]:
            deleted = await client.runs.DeleteRun(DeleteRunRequest(run_id=run_id))
            if as_json:
                put_json(to_json(deleted))
            else:
                put(f"{run_id} deleted, {deleted.freed_bytes} bytes freed")
        return Exit.DONE

    return session.perform(work)


async def _cancelled(client: Client, run: Run, *, wait: bool, as_json: bool) -> None:
    if wait and run.status not in OVER:
        run, finish = await end_of(client, run.id, run.last_sequence)
        survivors = [] if finish is None else list(finish.run_finished.survivors)
        if survivors:
            note(f"warning: {run.id}: not proven gone: {survivors_text(survivors)}")
    _put_run(run, as_json=as_json)


def _put_run(run: Run, *, as_json: bool) -> None:
    if as_json:
        put_json({"run": to_json(run)})
    else:
        put(f"{run.id} {word(run, 'status')}")
