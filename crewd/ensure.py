"""Make sure that the daemon of a state directory runs: the only place that starts one unasked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from crewd.instance import Lock, holder, try_lock
from crewd.paths import StatePaths
from crewd.refusal import Exit, Refusal, refusing
from crewd.systemd.units import UNIT, find_installed_for
from crewd.systemd.user_manager import UnreachableError, UserManager
from crewd_client import locate
from crewd_client.locate import DaemonFile, Location

START_TIMEOUT = timedelta(seconds=30)

# A daemon that began life inside a worker would carry the worker's token and its mark, and the host
# would end it together with the worker.
_OF_A_WORKER = ("CREWD_TASK_TOKEN", "CREWD_ATTEMPT")
_OF_A_SERVICE = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_NOT_INHERITED = {
    *_OF_A_WORKER,
    *_OF_A_SERVICE,
    "CREWD_TOKEN",
    "CREWD_TOKEN_FILE",
    "CREWD_RUN_ID",
    "CREWD_TASK_ID",
}
_PAUSE_SECONDS = 0.02
_LOG_BYTES = 8 << 20
_TOLD_LINES = 20


Note = Callable[[str], None]


def ensure(
    env: Mapping[str, str],
    state_dir: str | None = None,
    timeout: timedelta = START_TIMEOUT,
    note: Note = lambda _text: None,
) -> DaemonFile:
    """Return what the serving daemon tells of itself; start it first if none runs.

    Where the user has enabled a unit for it, that is what is started. `note` is told what else is
    worth knowing.
    """
    start = _Start(StatePaths(locate.state_dir(env, state_dir)), env, note)
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

    def __init__(self, paths: StatePaths, env: Mapping[str, str], note: Note) -> None:
        self.paths = paths
        self._env = env
        self._note = note
        self._manager: UserManager | None = None
        """Whom we had start the unit."""
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
            self._begin()

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
        if self._manager is not None:
            return _unit_failed(self._manager, why)
        log = self.paths.log
        told = last_lines(log, self._log_start) if self._child is not None else ""
        message = f"the daemon of {self.paths.root} could not be started: {why}"
        return Refusal(
            f"{message}\n{told}" if told else message,
            hint=f"its log: {log}",
            exit_code=Exit.NO_DAEMON,
        )

    def release(self) -> None:
        if self._manager is not None and self._child is not None:
            # Only who waits for the unit is ended: the unit itself goes on starting.
            self._child.terminate()
            self._child.wait()
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
        by_unit = self._manager is not None
        if holder(self.paths.lock) is None and (code or not by_unit):
            what = "systemctl --user start" if by_unit else "crewd serve"
            raise self.failed(f"`{what}` ended with code {code}")
        # The unit has started; or somebody else started one in the same moment: that one will do.
        self._child = None

    def _begin(self) -> None:
        self._refuse_inside_worker()
        self._manager = _manager_of_unit(self._env, self.paths.root, self._note)
        if self._manager is not None:
            self._child = self._manager.starting(UNIT)
        else:
            self._spawn()

    def _refuse_inside_worker(self) -> None:
        inside = [name for name in _OF_A_WORKER if self._env.get(name)]
        if inside:
            raise Refusal(
                f"no daemon runs for {self.paths.root}, and a worker must not start one",
                hint=f"start it outside of the worker ({inside[0]} is set here): crewd ensure",
                exit_code=Exit.NO_DAEMON,
            )

    def _spawn(self) -> None:
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


def _manager_of_unit(env: Mapping[str, str], root: Path, note: Note) -> UserManager | None:
    """Return who is to start the daemon by its unit, if the user has enabled one for it."""
    unit = find_installed_for(root, env)
    # A socket that is named is to be that of the daemon, and the unit does not know of it.
    if unit is None or not unit.enabled or env.get("CREWD_SOCKET"):
        return None
    try:
        manager = UserManager(env)
    except UnreachableError as problem:
        why = f"the user's service manager cannot be reached: {problem}"
    else:
        known = manager.properties(UNIT, "FragmentPath")["FragmentPath"]
        if known == str(unit.folder / UNIT):
            return manager
        # With another home than that of the session it would be another unit of this name.
        why = f"the user's service manager has {known or 'no such unit'} instead"
    note(
        f"the daemon is started without its unit {UNIT}: {why}; the unit can take over after "
        "`crewd stop`"
    )
    return None


def _unit_failed(manager: UserManager, why: str) -> Refusal:
    told = manager.last_lines(UNIT)
    result = manager.properties(UNIT, "Result")["Result"]
    message = f"the daemon could not be started by its unit {UNIT}: {why} ({result})"
    return Refusal(
        f"{message}\n{told}" if told else message,
        hint=f"systemctl --user status {UNIT}; journalctl --user -u {UNIT}",
        exit_code=Exit.NO_DAEMON,
    )


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
