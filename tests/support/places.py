"""Short-lived directories with a short path: a unix socket's path holds about a hundred bytes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.support.daemon import Daemon


@contextmanager
def a_place() -> Generator[Path]:
    root = Path(tempfile.mkdtemp(prefix="cw-"))
    try:
        yield root
    finally:
        shutil.rmtree(root)


@asynccontextmanager
async def a_daemon(*options: str) -> AsyncGenerator[Daemon]:
    """Give a daemon that is not started yet, and clear away all of it in the end."""
    with a_place() as root:
        daemon = Daemon(root, options=options)
        try:
            yield daemon
        finally:
            await daemon.end()
