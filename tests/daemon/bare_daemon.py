"""A daemon that consists of nothing: `bare_daemon.py STATE_DIR HABIT` shows the life around it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from crewd import log
from crewd.config import Config, LogFormat, LogLevel, Options, read_config
from crewd.life import End, Ending, Identity, live
from crewd.refusal import Exit


class Bare:
    """Says on stdout what is asked of it; `habit` is what goes wrong."""

    store_id = "bare"

    def __init__(self, habit: str, ending: Ending, daemon_file: Path) -> None:
        self._habit = habit
        self._ending = ending
        self._daemon_file = daemon_file

    def side_tasks(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        return {"side": self._side}

    async def serve(self) -> None:
        say("serve", self._daemon_file)
        if self._habit == "serve_fails":
            raise RuntimeError("no socket")

    async def recover(self) -> None:
        say("recover", self._daemon_file)
        if self._habit == "slow_recovery":
            await asyncio.Event().wait()
        if self._habit == "recovery_fails":
            raise RuntimeError("no rows")
        if self._habit == "disk_fails":
            self._ending.ask(End(reason="the disk is broken", exit_code=Exit.FAILED))

    async def follow_standing(self, tell: Callable[[str], None]) -> None:
        tell(f"bare {self._habit}")
        await asyncio.Event().wait()

    async def stop(self, end: End) -> None:
        say(f"stop: {end.reason}", self._daemon_file)
        if self._habit == "slow_stop":
            await asyncio.Event().wait()

    async def _side(self) -> None:
        if self._habit == "side_fails":
            raise RuntimeError("no luck")
        if self._habit != "side_ends":
            await asyncio.Event().wait()


@asynccontextmanager
async def assemble(config: Config, _: Identity, ending: Ending) -> AsyncGenerator[Bare]:
    say("open", config.paths.daemon_file)
    yield Bare(sys.argv[2], ending, config.paths.daemon_file)
    say("close", config.paths.daemon_file)


def say(what: str, daemon_file: Path) -> None:
    sys.stdout.write(f"{what}{' +' if daemon_file.exists() else ''}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    log.set_up(LogLevel.INFO, LogFormat.JSON, sys.stderr)
    sys.exit(live(read_config({"HOME": "/"}, Options(state_dir=sys.argv[1])), assemble))
