"""What a start puts in order, beside the runs."""

from __future__ import annotations

import asyncio

from crewd.runtime.pump import PumpTools
from crewd.store.reads import Reads
from crewd.workers.transcript import delete_run, transcribed_runs


async def clear_left(tools: PumpTools, reads: Reads) -> None:
    """Delete what a daemon that ended had not deleted yet, or not finished."""
    await _clear_transcripts(tools, reads)
    await _clear_artifacts(tools, reads)


async def _clear_transcripts(tools: PumpTools, reads: Reads) -> None:
    folders = await asyncio.to_thread(transcribed_runs, tools.transcripts)
    known = await reads.known_runs(folders)
    for run_id in folders:
        if run_id not in known:
            await asyncio.to_thread(delete_run, tools.transcripts, run_id)


async def _clear_artifacts(tools: PumpTools, reads: Reads) -> None:
    files = tools.artifacts
    folders = await asyncio.to_thread(files.runs)
    known = await reads.known_runs(folders)
    for run_id in folders:
        clear = files.sweep if run_id in known else files.delete_run
        await asyncio.to_thread(clear, run_id)
