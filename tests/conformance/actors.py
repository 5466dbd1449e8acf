"""Real daemons on the stage: one for all scenarios, and those that a scenario has for itself."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import cast

from tests.conformance.files import Files, StageError, Step, a_short_place, texts_of
from tests.conformance.tap import Tap
from tests.support.daemon import Daemon

Vars = dict[str, object]


class Shared:
    """Started for the first scenario that needs it; ended with the stage."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._daemon: Daemon | None = None

    async def start(self) -> Vars:
        if self._daemon is None:
            self._root = a_short_place()
            self._daemon = Daemon(self._root)
            await self._daemon.start()
        return _vars(self._daemon)

    async def end(self) -> None:
        daemon, root = self._daemon, self._root
        self._daemon = self._root = None
        try:
            if daemon is not None:
                await daemon.end()
        finally:
            if root is not None:
                shutil.rmtree(root)


class Own:
    """A daemon that the scenario may kill."""

    def __init__(self, files: Files, step: Step) -> None:
        self._files = files
        options = tuple(map(str, cast("list[object]", step.get("options", []))))
        name = str(files.state_dir.relative_to(files.root))
        self._daemon = Daemon(files.root, name=name, options=options)
        self._daemon.env |= texts_of(step.get("env"))
        self._tap = Tap(files.runtime_dir / "tap.sock") if step.get("tap") else None
        self._serves = False

    async def start(self) -> Vars:
        await self._daemon.start()
        self._serves = True
        found = _vars(self._daemon)
        if self._tap is not None:
            await self._tap.open(Path(str(found["socket"])))
            found["socket"] = str(self._tap.socket)
        return found

    def client_env(self) -> dict[str, str]:
        tapped = {"CREWD_SOCKET": str(self._tap.socket)} if self._tap is not None else {}
        return {**self._files.env(), **tapped}

    async def kill(self) -> Vars:
        self._daemon.kill()
        self._serves = False
        return {}

    async def stop(self) -> Vars:
        self._daemon.send(signal.SIGTERM)
        code = await self._daemon.ended()
        self._serves = False
        if code != 0:
            raise StageError(f"the daemon ended with {code}")
        return {}

    async def restart(self) -> Vars:
        if self._serves:
            raise StageError("the daemon has not ended")
        return await self.start()

    async def tapped(self) -> Vars:
        if self._tap is None:
            raise StageError("the daemon was started without a tap")
        return {"authorities": sorted(self._tap.authorities)}

    async def end(self) -> None:
        if self._tap is not None:
            await self._tap.close()
        await self._daemon.end()


def _vars(daemon: Daemon) -> Vars:
    told = json.loads((daemon.state_dir / "daemon.json").read_text())
    token = Path(told["token_file"]).read_text().strip()
    names = ("state_dir", "socket", "instance_id", "store_id")
    return {**{name: told[name] for name in names}, "token": token}
