"""A state directory with a home around it, and what a check finds there."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from crewd.doctor.finding import Check, Finding, Place, Severity
from crewd.instance import Holder, Lock, operator_token, try_lock
from crewd.store.db import open_writer
from tests.host.driver import HostUnderTest


class Patient:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.state_dir = root / "s"
        (root / "run").mkdir(mode=0o700)
        env = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(root / "run"),
            "USER": "ada",
        }
        self.place = Place(env=env, state_dir=self.state_dir, socket=self.state_dir / "crewd.sock")
        self.place.paths.make()
        operator_token(self.place.paths.token)
        self._host: HostUnderTest | None = None
        self._ends: list[socket.socket | Lock | subprocess.Popen[bytes]] = []

    def vary(self, **changes: object) -> None:
        """Look at another place."""
        self.place = replace(self.place, **changes)  # type: ignore[arg-type]

    def set(self, **variables: str) -> None:
        self.vary(env={**self.place.env, **variables})

    def config(self, name: str, text: str, mode: int = 0o600) -> Path:
        """Write one of the user's files."""
        file = self.place.config_dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def database(self) -> Path:
        """Make the database as the daemon does."""
        open_writer(self.place.paths.database)[0].close()
        self.place.paths.database.chmod(0o600)
        return self.place.paths.database

    def execute(self, statement: str, *values: object) -> None:
        with sqlite3.connect(self.place.paths.database) as connection:
            connection.execute(statement, values)
        connection.close()

    def hold(self, *, pid: int = 0, version: str = "0.1.0") -> Holder:
        """Have a process hold the state directory as a daemon does."""
        lock = try_lock(self.place.paths.lock)
        assert lock is not None
        me = Holder(
            pid=pid or os.getpid(),
            version=version,
            socket=str(self.place.socket),
            state_dir=str(self.state_dir),
        )
        lock.sign(me)
        self._ends.append(lock)
        return me

    def listen(self) -> None:
        """Have somebody listen at the socket."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self.place.socket))
        listener.listen()
        self._ends.append(listener)

    def host(self) -> HostUnderTest:
        """Start a host of the state directory."""
        self._host = HostUnderTest(self.state_dir)
        self._host.start()
        return self._host

    def child(self, script: str, env: Mapping[str, str] | None = None) -> int:
        """Start a process that first says that it is there; return its pid."""
        child = subprocess.Popen(
            [sys.executable, "-c", f"print(flush=True)\n{script}"],
            stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # A host that finds it kills its whole group.
        )
        assert child.stdout is not None
        child.stdout.readline()
        self._ends.append(child)
        return child.pid

    def end(self) -> None:
        for each in self._ends:
            if isinstance(each, socket.socket):
                each.close()
            elif isinstance(each, Lock):
                each.release()
            else:
                each.kill()
                each.communicate()
        if self._host is not None:
            self._host.end()

    def found(self, check: Check) -> list[Finding]:
        return list(check(self.place))

    def one(self, check: Check, identity: str) -> Finding:
        """Return the one finding with this id."""
        (found,) = (finding for finding in self.found(check) if finding.id == identity)
        return found

    def is_well(self, check: Check) -> bool:
        return all(finding.severity is Severity.OK for finding in self.found(check))

    def mended(self, check: Check, finding: Finding) -> bool:
        """Type the finding's command and look again."""
        subprocess.run(["bash", "-c", finding.command], check=True, env=dict(self.place.env))
        return self.is_well(check)
