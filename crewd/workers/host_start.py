"""Start the host process, and notice how it ended if it did not stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crewd.host import protocol
from crewd.host.protocol import EXIT_ANOTHER_HOST, HostPaths

_PACKAGE_ROOT = Path(protocol.__file__).parents[2]
_LOG_BYTES = 1 << 20


class HostOfUnit:
    """Stands where a service manager owns the host: it alone starts one."""

    def __init__(self, paths: HostPaths) -> None:
        self._paths = paths

    def keep_one_starting(self) -> str:
        return (
            f"no host answers at {self._paths.socket}, and this daemon is to start none: "
            "systemctl --user start crewd-host"
        )

    def let_go(self) -> None:
        return


class HostStarter:
    """Starts the host of one state directory, which is to outlive us."""

    def __init__(self, paths: HostPaths) -> None:
        self._paths = paths
        self._popen: subprocess.Popen[bytes] | None = None

    def keep_one_starting(self) -> str:
        """Start a host unless the last one is still about to answer; return what went wrong."""
        ended = self._how_it_ended()
        if self._popen is None or ended:
            try:
                self._start()
            except OSError as error:
                return f"cannot start the host: {error}"
        return ended

    def let_go(self) -> None:
        """Leave the host to itself, and keep Popen from complaining that it still runs."""
        if self._popen is not None and self._popen.poll() is None:
            self._popen.returncode = 0

    def _open_log(self) -> int:
        log = os.open(self._paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.fstat(log).st_size > _LOG_BYTES:
            os.ftruncate(log, 0)
        return log

    def _start(self) -> None:
        self._paths.make_private()
        log = self._open_log()
        try:
            # From there it is the code that we run ourselves, whatever lies where we were started.
            self._popen = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "crewd.host", "--state-dir", str(self._paths.root.parent)],
                cwd=_PACKAGE_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _how_it_ended(self) -> str:
        code = None if self._popen is None else self._popen.poll()
        if code is None:
            return ""
        if code == EXIT_ANOTHER_HOST:
            return f"another host holds {self._paths.lock}"
        return f"the host ended with code {code}: see {self._paths.log}"
