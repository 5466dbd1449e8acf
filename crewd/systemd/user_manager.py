"""The user's own service manager, `systemd --user`, asked by way of its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from crewd.refusal import Exit, Refusal

_ANSWER_SECONDS = 20.0
_TOLD_LINES = 15


class UnreachableError(Exception):
    """No manager of this user answers. The message says why."""


class UserManager:
    """Of this user. What it refuses is a `Refusal` in its own words."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Find it, or raise UnreachableError. Where the session does not tell, it is looked for."""
        runtime = _runtime_dir(env)
        if shutil.which("systemctl", path=env.get("PATH")) is None:
            raise UnreachableError("systemctl is not on PATH")
        if runtime is None:
            raise UnreachableError(f"no systemd runs for user {os.getuid()}")
        self._env = {**env, "XDG_RUNTIME_DIR": str(runtime)}
        try:
            done = self._call("systemctl", "--user", "show", "--property=Version")
        except Refusal as slow:
            raise UnreachableError(slow.message) from slow
        if done.returncode:
            raise UnreachableError(done.stderr.strip() or "systemctl --user fails")

    def tell(self, verb: str, *arguments: str) -> None:
        """Have something done and wait for it."""
        done = self._call("systemctl", "--user", verb, *arguments)
        if done.returncode:
            raise Refusal(
                f"systemctl --user {verb} {' '.join(arguments)}: {done.stderr.strip()}",
                exit_code=Exit.FAILED,
            )

    def starting(self, unit: str) -> subprocess.Popen[bytes]:
        """Begin to start a unit, one that has failed too; the process ends when it has started."""
        self._call("systemctl", "--user", "reset-failed", unit)
        return subprocess.Popen(  # noqa: S603 - systemd's own command
            ["systemctl", "--user", "start", unit],  # noqa: S607 - that of the user's PATH
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def properties(self, unit: str, *names: str) -> dict[str, str]:
        """Return what it knows of a unit."""
        done = self._call("systemctl", "--user", "show", f"--property={','.join(names)}", unit)
        lines = (line.partition("=") for line in done.stdout.splitlines())
        return dict.fromkeys(names, "") | {name: value for name, _, value in lines}

    def can_start_with(self, properties: Sequence[str], command: Sequence[str]) -> bool:
        """Try whether a command runs well as a service with these settings."""
        if shutil.which("systemd-run", path=self._env.get("PATH")) is None:
            return False
        settings = [f"--property={each}" for each in properties]
        run = ("systemd-run", "--user", "--quiet", "--wait", "--collect")
        return self._call(*run, *settings, *command).returncode == 0

    def last_lines(self, unit: str) -> str:
        """Return the end of a unit's log, empty where no journal is kept."""
        if shutil.which("journalctl", path=self._env.get("PATH")) is None:
            return ""
        journal = ("journalctl", "--user", "--quiet", "--no-pager", "--output=cat")
        lines = self._call(*journal, f"--lines={_TOLD_LINES}", f"--unit={unit}").stdout.splitlines()
        return "\n".join(f"  {line}" for line in lines)

    def _call(self, *command: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603 - systemd's own commands
                command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ANSWER_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            raise Refusal(
                f"`{' '.join(command[:3])}` does not end within {_ANSWER_SECONDS:g} s",
                exit_code=Exit.FAILED,
            ) from expired


def lingers(system: Path, user: str) -> bool:
    """Tell whether a user's services run without a session: from boot on, and after logout."""
    return (system / "var/lib/systemd/linger" / user).exists()


def user_name(env: Mapping[str, str]) -> str:
    """Return the user's name if the environment tells one that can be a file's."""
    user = env.get("USER") or env.get("LOGNAME") or ""
    return "" if "/" in user or user.startswith(".") else user


def _runtime_dir(env: Mapping[str, str]) -> Path | None:
    """Return the directory below which the user's manager listens."""
    named = env.get("XDG_RUNTIME_DIR", "")
    places = (Path(named), Path(f"/run/user/{os.getuid()}"))
    found = (place for place in places if place.is_absolute() and _listens(place))
    return next(found, None)


def _listens(runtime: Path) -> bool:
    try:
        return (runtime / "systemd" / "private").is_socket()
    except OSError:
        return False
