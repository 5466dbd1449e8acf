"""`crew logs`: what a worker wrote."""

from __future__ import annotations

from collections.abc import Callable

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit
from crewd_client.commands.pick import PAGE, pick_run
from crewd_client.commands.session import Session
from crewd_client.commands.terminal import Sink, note
from crewd_client.commands.transcript import Transcript, Verbatim
from crewd_client.pages import list_artifacts
from crewd_client.v1.artifact_pb2 import ARTIFACT_KIND_PROMPT
from crewd_client.v1.run_stream_pb2 import (
    OUTPUT_STREAM_STDERR,
    OUTPUT_STREAM_STDOUT,
    ReadOutputRequest,
)
from crewd_client.v1.run_task_pb2 import GetTaskRequest
from crewd_client.watch import read_output

_FIRST_TAIL = 16 << 10


@click.command()
@click.argument("run")
@click.argument("task")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt has ended.")
@click.option(
    "--tail", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Only the last N lines."
)
@click.option(
    "--attempt", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Default: the latest."
)
@click.option("--stderr", is_flag=True, help="What it wrote to stderr instead of stdout.")
@click.option("--raw", is_flag=True, help="The bytes as they are, of agents as well.")
@click.pass_obj
def logs(session: Session, /, run: str, task: str, *, follow: bool, **options: int | None) -> int:
    """Print what the worker of a task wrote.

    Of a `pi` agent: what it said and which tools it used, in words. --raw prints pi's own events.
    """

    async def work(client: Client) -> int:
        request = ReadOutputRequest(
            run_id=await pick_run(client, run),
            task_id=task,
            attempt=options["attempt"] or 0,
            stream=OUTPUT_STREAM_STDERR if options["stderr"] else OUTPUT_STREAM_STDOUT,
        )
        raw = options["raw"] or options["stderr"]
        new_text = Verbatim if raw else await _text_of(client, request)
        sink, text = Sink(), new_text()
        lines, ended = options["tail"], False
        if lines is not None:
            data, text, ended = await _tail(client, request, lines, new_text, follow=follow)
            sink.write(data)
        request.follow = follow
        if lines is None or (follow and not ended):
            async for part in read_output(client, request):
                if part.truncated_before:
                    note("… some output is no longer kept …")
                    text.skip()
                sink.write(text.feed(part.data))
        sink.write(text.finish())
        sink.finish()
        return Exit.DONE

    return session.perform(work)


async def _text_of(client: Client, request: ReadOutputRequest) -> Callable[[], Verbatim]:
    """Tell how the output of this kind of worker is shown."""
    asked = GetTaskRequest(run_id=request.run_id, task_id=request.task_id)
    task = (await client.runs.GetTask(asked)).task
    if task.adapter != "pi":
        return Verbatim
    attempt, prompt = request.attempt or task.attempt, ""
    # By its name alone it would be the prompt of any task.
    kept = list_artifacts(
        client,
        request.run_id,
        task_id=request.task_id,
        kinds=[ARTIFACT_KIND_PROMPT],
        page_size=PAGE,
    )
    async for artifact in kept:
        if artifact.attempt == attempt:
            prompt = f"crew artifacts {artifact.id}"
    return lambda: Transcript(prompt)


async def _tail(
    client: Client,
    request: ReadOutputRequest,
    lines: int,
    new_text: Callable[[], Verbatim],
    *,
    follow: bool,
) -> tuple[bytes, Verbatim, bool]:
    """Give the last lines, what goes on with them, and whether all is over.

    The request begins after them then.
    """
    size = _FIRST_TAIL
    while True:
        request.offset = -size
        parts = [part async for part in read_output(client, request)]
        text, ended = new_text(), any(part.eof for part in parts)
        data = b""
        for part in parts:
            if part.truncated_before or (part is parts[0] and part.offset):
                text.skip()
            data += text.feed(part.data)
        if ended or not follow:
            data += text.finish()
        # A last line that is not ended counts as one.
        if not parts or parts[0].offset == 0 or data.count(b"\n", 0, -1) >= lines:
            break
        size *= 8
    request.offset = 0
    if parts:
        request.attempt, request.offset = parts[-1].attempt, parts[-1].next_offset
    kept = data.splitlines(keepends=True)
    return b"".join(kept[max(len(kept) - lines, 0) :]), text, ended
