"""`crew logs`: what a worker wrote."""

from __future__ import annotations

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit
from crewd_client.commands.pick import pick_run
from crewd_client.commands.session import Session
from crewd_client.commands.terminal import Sink, note
from crewd_client.v1.run_stream_pb2 import (
    OUTPUT_STREAM_STDERR,
    OUTPUT_STREAM_STDOUT,
    ReadOutputRequest,
)
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
@click.pass_obj
def logs(session: Session, /, run: str, task: str, *, follow: bool, **options: int | None) -> int:
    """Print what the worker of a task wrote."""

    async def work(client: Client) -> int:
        request = ReadOutputRequest(
            run_id=await pick_run(client, run),
            task_id=task,
            attempt=options["attempt"] or 0,
            stream=OUTPUT_STREAM_STDERR if options["stderr"] else OUTPUT_STREAM_STDOUT,
        )
        sink = Sink()
        lines, ended = options["tail"], False
        if lines is not None:
            data, ended = await _tail(client, request, lines)
            sink.write(data)
        request.follow = follow
        if lines is None or (follow and not ended):
            async for part in read_output(client, request):
                if part.truncated_before:
                    note("… some output is no longer kept …")
                sink.write(part.data)
        sink.finish()
        return Exit.DONE

    return session.perform(work)


async def _tail(client: Client, request: ReadOutputRequest, lines: int) -> tuple[bytes, bool]:
    """Give the last lines and whether more may come; let the request begin after them."""
    size = _FIRST_TAIL
    while True:
        request.offset = -size
        parts = [part async for part in read_output(client, request)]
        data = b"".join(part.data for part in parts)
        # A last line that is not ended counts as one.
        if not parts or parts[0].offset == 0 or data.count(b"\n", 0, -1) >= lines:
            break
        size *= 8
    request.offset = 0
    if parts:
        request.attempt, request.offset = parts[-1].attempt, parts[-1].next_offset
    kept = data.splitlines(keepends=True)
    return b"".join(kept[max(len(kept) - lines, 0) :]), any(part.eof for part in parts)
