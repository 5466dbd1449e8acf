"""What a start puts in order, beside the runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crewd.store.reads import Reads
from crewd.workers.transcript import delete_run, transcribed_runs


async def delete_left_transcripts(root: Path, reads: Reads) -> None:
    """Delete transcripts whose run was deleted just before a daemon ended."""
    folders = await asyncio.to_thread(transcribed_runs, root)
    known = await reads.known_runs(folders)
    for run_id in folders:
        if run_id not in known:
            await asyncio.to_thread(delete_run, root, run_id)
