"""Make sure that the daemon of a state directory runs: the only place that starts one unasked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from crewd.instance import Lock, holder, try_lock
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal, refusing
from crewd_client import locate
from crewd_client.locate import DaemonFile, Location

START_TIMEOUT = timedelta(seconds=30)

# A daemon that began life inside a worker would carry the worker's token and its mark, and the host
# would end it together with the worker.
_OF_A_WORKER = ("CREWD_TASK_TOKEN", "CREWD_ATTEMPT")
_NOT_INHERITED = {*_OF_A_WORKER, "CREWD_TOKEN", "CREWD_TOKEN_FILE", "CREWD_RUN_ID", "CREWD_TASK_ID"}
_PAUSE_SECONDS = 0.02
_LOG_BYTES = 8 << 20
_TOLD_LINES = 20


def ensure(
    env: Mapping[str, str], state_dir: str | None = None, timeout: timedelta = START_TIMEOUT
) -> DaemonFile:
    """Return what the serving daemon tells of itself; start it first if none runs."""
    start = _Start(StatePaths(locate.state_dir(env, state_dir)), env)
    deadline = time.monotonic() + timeout.total_seconds()
    try:
        while (daemon := _serving(start)) is None:
            start.go_on()
            if time.monotonic() > deadline:
                raise start.too_late(timeout)
            time.sleep(_PAUSE_SECONDS)
    finally:
        start.release()
    return daemon


def find_by_state_dir(state_dir: Path) -> Location | None:
    """Find the live daemon of a state directory, whatever the environment says."""
    if holder(StatePaths(state_dir).lock) is None:
        return None
    # HOME and TMPDIR play no part once the directory is named and the daemon has said where it is.
    location = locate.find({}, state_dir=state_dir)
    return location if location.daemon is not None else None


def last_lines(log: Path, start: int) -> str:
    """Return the end of what was logged after an offset."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in lines[-_TOLD_LINES:])


def kept_waiting(asked: float, patience: timedelta) -> bool:
    """Tell whether who did not answer let us wait for it: who is not there refuses at once."""
    return time.monotonic() - asked > patience.total_seconds() / 2


def way_out(pid: int) -> str:
    return f"if that stays so: kill -9 {pid}; crewd ensure"


def _serving(start: _Start) -> DaemonFile | None:
    start.hangs = False
    location = find_by_state_dir(start.paths.root)
    if location is None or location.daemon is None:
        return None
    # gRPC is not loaded while there is nobody to call.
    from crewd import contact  # noqa: PLC0415

    asked = time.monotonic()
    try:
        info = contact.server_info(location, contact.ANSWER_TIMEOUT)
    except contact.NotReachedError:
        start.hangs = kept_waiting(asked, contact.ANSWER_TIMEOUT)
        return None
    ours = info.instance_id == location.daemon.instance_id
    serving = info.status == contact.ServerStatus.SERVER_STATUS_SERVING
    return location.daemon if ours and serving else None


class _Start:
    """One attempt to have a daemon, shared with all who try at the same time by way of a lock."""

    def __init__(self, paths: StatePaths, env: Mapping[str, str]) -> None:
        self.paths = paths
        self._env = env
        self._lock: Lock | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self.hangs = False
        """The daemon is there, and let the last question wait for nothing."""

    def go_on(self) -> None:
        """Start the daemon if nobody has or does; otherwise see what became of it."""
        if self._child is not None:
            self._look_at_child(self._child)
        elif holder(self.paths.lock) is None and self._alone():
            self._spawn()

    def too_late(self, timeout: timedelta) -> Refusal:
        found = holder(self.paths.lock)
        if not self.hangs or found is None or not found.pid:
            return self.failed(f"it does not serve after {timeout.total_seconds():g} s")
        return Refusal(
            f"the daemon of {self.paths.root} is there, but pid {found.pid} does not answer",
            hint=f"{way_out(found.pid)}; its log: {self.paths.log}",
            exit_code=Exit.NO_DAEMON,
        )

    def failed(self, why: str) -> Refusal:
        log = self.paths.log
        told = last_lines(log, self._log_start) if self._child is not None else ""
        message = f"the daemon of {self.paths.root} could not be started: {why}"
        return Refusal(
            f"{message}\n{told}" if told else message,
            hint=f"its log: {log}",
            exit_code=Exit.NO_DAEMON,
        )

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _alone(self) -> bool:
        """Take the start lock; then look again, for who had it before may have started one."""
        if self._lock is None:
            self.paths.make()
            self._lock = try_lock(self.paths.start_lock)
        return self._lock is not None and holder(self.paths.lock) is None

    def _look_at_child(self, child: subprocess.Popen[bytes]) -> None:
        code = child.poll()
        if code is None:
            return
        if holder(self.paths.lock) is None:
            raise self.failed(f"`crewd serve` ended with code {code}")
        self._child = None  # Somebody else started one in the same moment: that one will do.

    def _spawn(self) -> None:
        inside = [name for name in _OF_A_WORKER if self._env.get(name)]
        if inside:
            raise Refusal(
                f"no daemon runs for {self.paths.root}, and a worker must not start one",
                hint=f"start it outside of the worker ({inside[0]} is set here): crewd ensure",
                exit_code=Exit.NO_DAEMON,
            )
        with refusing("cannot write", self.paths.log):
            self._log_start = _rotate(self.paths.log)
            descriptor = os.open(self.paths.log, _APPEND, 0o600)
        try:
            self._child = subprocess.Popen(  # noqa: S603 - ourselves
                [*_SERVE, "--state-dir", str(self.paths.root)],
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                cwd="/",
                env={name: v for name, v in self._env.items() if name not in _NOT_INHERITED},
                start_new_session=True,
                close_fds=True,
            )
        finally:
            os.close(descriptor)


_SERVE = (sys.executable, "-P", "-m", "crewd.cli", "serve")
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def _rotate(log: Path) -> int:
    """Put a long log aside, and return how long the one to append to is."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if size <= _LOG_BYTES:
        return size
    log.replace(log.with_name(f"{log.name}.1"))
    return 0
