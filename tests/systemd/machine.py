"""A real systemd as PID 1 of namespaces of its own, and a user of it with a service manager.

Everything in it ends with its PID 1; mounts go with the namespace, and the cgroup is removed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from crewd.instance import holder
from crewd.paths import StatePaths
from tests.architecture.sources import ROOT
from tests.support.places import a_place
from tests.support.waiting import wait_until

CREWD: Final = str(Path(sys.executable).with_name("crewd"))
CREW: Final = str(Path(sys.executable).with_name("crew"))
UNTIL_GO: Final = "while [ ! -e go ]; do sleep 0.02; done"
PATIENCE: Final = 60.0
_SYSTEMD: Final = Path("/lib/systemd/systemd")
CGROUPS: Final = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
_COMMANDS: Final = ("unshare", "nsenter", "setpriv", "systemctl", "systemd-run")
_SHOWN_CHARACTERS: Final = 3000
_NAME: Final = "crewtest"
_UID: Final = 47381
_MANAGER_UNIT: Final = f"user@{_UID}.service"

_SEPARATE: Final = """
set -e
echo $$ > {cgroup}/cgroup.procs
exec unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup sh -ec '
mount --make-rprivate /
mount -t proc proc /proc
mount -o bind /proc/sys /proc/sys
mount -o remount,ro,bind /proc/sys
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir /run/owned
chown {uid}:{uid} /run/owned
{then}
'
"""
_BOOT: Final = """
mount -t tmpfs tmpfs /var/log
mkdir /var/log/journal
mkdir -p /run/systemd/system /run/systemd/unit-root /run/systemd/journal /run/lock
mkdir /run/systemd/journald.conf.d
printf "[Journal]\nReadKMsg=no\nAudit=no\n" > /run/systemd/journald.conf.d/test.conf
touch /run/systemd/journal/flushed
{opened}
mkdir -p -m 700 {runtime}
chown {uid}:{uid} {runtime}
mount -o bind {root}/passwd /etc/passwd
mount -o bind {root}/group /etc/group
mount -o bind {root}/console /dev/console
cp {root}/units/* /run/systemd/system/
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin {systemd} --system \
  --unit=test.target --log-target=console --show-status=0 --default-standard-output=null
"""
_TARGET: Final = """
[Unit]
DefaultDependencies=no
Wants=systemd-journald.socket systemd-journald.service {manager}
AllowIsolate=yes
"""
_MANAGER: Final = """
[Unit]
DefaultDependencies=no
After=systemd-journald.service
[Service]
Type=notify
Delegate=yes
Slice=user-{uid}.slice
User={name}
Environment=HOME={home} XDG_RUNTIME_DIR={runtime} PATH=/usr/bin:/bin
ExecStart={systemd} --user --unit=default.target
"""


def why_not() -> str:
    """Say why there can be no such machine here; empty where there can."""
    if os.getuid() != 0:
        return "needs root"
    missing = [command for command in _COMMANDS if shutil.which(command) is None]
    if missing or not _SYSTEMD.exists():
        return f"needs systemd and {', '.join(missing) or 'its program'}"
    if _cgroup_root() is None:
        return "needs a cgroup v2 tree that can be written"
    try:
        with _a_cgroup() as cgroup:
            tried = _separately(cgroup, "true", output=subprocess.PIPE)
            said, _ = tried.communicate(timeout=PATIENCE)
    except OSError as error:
        return f"needs a cgroup of its own: {error}"
    return "" if tried.returncode == 0 else f"needs namespaces, mounts, users: {said.decode()}"


class Machine:
    """One of them, booted. `user` runs a command as its user would."""

    def __init__(self, root: Path, cgroup: Path) -> None:
        self.root = root
        self._cgroup = cgroup
        self._boot: subprocess.Popen[bytes] | None = None
        self.home = root / "home"
        self.runtime = Path(f"/run/user/{_UID}")
        self.units = self.home / ".config/systemd/user"
        self.log = root / "log"
        self.state_dir = self.home / ".local" / "state" / "crewd"
        self.paths = StatePaths(self.state_dir)
        self.env = {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "USER": _NAME,
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._pid_1 = 0

    def user(self, *command: str, check: bool = True, **variables: str) -> str:
        """Run a command and return what it says, to stdout first."""
        env = [f"{name}={value}" for name, value in {**self.env, **variables}.items() if value]
        me = ("--reuid", str(_UID), "--regid", str(_UID), "--clear-groups")
        done = subprocess.run(
            ["nsenter", "-t", str(self._pid_1), "-a", "setpriv", *me, "env", "-i", *env, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        said = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{command}: {said}\n{self.log_text()}"
        return said

    def crewd(self, *arguments: str, check: bool = True, **variables: str) -> str:
        return self.user(CREWD, *arguments, check=check, **variables)

    def systemctl(self, *arguments: str, check: bool = True) -> str:
        return self.user("systemctl", "--user", *arguments, check=check)

    def show(self, unit: str, name: str) -> str:
        return self.systemctl("show", f"--property={name}", "--value", unit).strip()

    def daemon(self) -> int:
        """Return the pid of the daemon as its user sees it; 0 if there is none."""
        found = holder(self.paths.lock)
        return found.pid if found is not None else 0

    def processes(self, unit: str) -> list[int]:
        """Return the processes of a unit, the main one first, as this machine's owner sees them."""
        manager = self._cgroup / "user.slice" / f"user-{_UID}.slice" / _MANAGER_UNIT
        cgroup = manager / "app.slice" / unit
        try:
            return sorted(int(pid) for pid in (cgroup / "cgroup.procs").read_text().split())
        except OSError:
            return []

    def drop_in(self, unit: str, text: str) -> None:
        """Override settings of a unit."""
        folder = self.units / f"{unit}.d"
        folder.mkdir(exist_ok=True)
        (folder / "test.conf").write_text(text)
        self.systemctl("daemon-reload")

    def run(self, *lines: str) -> Worker:
        """Have the daemon run a task of these lines of shell; return once it has begun."""
        project = Path(tempfile.mkdtemp(dir=self.home))
        os.chown(project, _UID, _UID)
        script = "\n".join(("echo $$ > pid.new", "mv pid.new pid", *lines))
        (project / "run.yaml").write_text(
            json.dumps({"goal": "g", "tasks": [{"id": "t", "command": ["sh", "-c", script]}]})
        )
        made = self.user(
            CREW, "run", "--detach", "--file", f"{project}/run.yaml", "--cwd", f"{project}"
        )
        worker = Worker(made.strip(), project)
        eventually(worker.began, "the worker runs")
        return worker

    def serve(self) -> None:
        """Have the units installed and started."""
        if not (self.units / "crewd.service").exists():
            self.crewd("service", "install", "--now")
        else:
            self.systemctl("start", "crewd.service")

    def is_as_served(self) -> bool:
        """Tell whether the units run as they are installed, with nothing to do."""
        alone = len(self.processes("crewd.service")) == len(self.processes("crewd-host.service"))
        return alone and self.daemon() != 0 and not any(self.units.glob("*/test.conf"))

    def reset(self) -> None:
        """End all of crewd and empty its state directory; what is installed stays."""
        for word in ("kill --signal=KILL", "stop", "reset-failed"):
            self.systemctl(*word.split(), "crewd.service", "crewd-host.service", check=False)
        shutil.rmtree(self.state_dir, ignore_errors=True)
        self.user("mkdir", "-p", "-m", "700", str(self.state_dir))
        for drop_in in self.units.glob("*/test.conf"):
            drop_in.unlink()
            self.systemctl("daemon-reload")

    def clear(self) -> None:
        """Have nothing of crewd installed or running."""
        self.reset()
        shutil.rmtree(self.units, ignore_errors=True)
        self.systemctl("daemon-reload")

    def log_text(self) -> str:
        """Return the end of what everything in it has said."""
        journal = ("journalctl", "--no-pager", "--output=cat", "--lines=40")
        done = subprocess.run(
            ["nsenter", "-t", str(self._pid_1), "-a", *journal],
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{self.log.read_text(errors='replace')}{done.stdout}"[-_SHOWN_CHARACTERS:]

    def boot(self, systemd: Path, patience: float) -> None:
        _prepare(self)
        script = _BOOT.format(
            opened=_opened(self.root, ROOT, Path(sys.prefix), Path(sys.base_prefix)),
            root=self.root,
            runtime=self.runtime,
            uid=_UID,
            systemd=systemd,
        )
        with self.log.open("ab") as log:
            self._boot = boot = _separately(self._cgroup, script, output=log)
        eventually(lambda: self._in_boot(_is_systemd(_child(boot.pid))), "systemd runs", patience)
        self._pid_1 = _child(boot.pid)
        private = Path(f"/proc/{self._pid_1}/root{self.runtime}/systemd/private")
        eventually(lambda: self._in_boot(private.is_socket()), "its user's listens", patience)

    def halt(self) -> None:
        """End all of it, however far it has come: its PID 1 ends with who waits for it."""
        if self._boot is not None:
            self._boot.kill()
            self._boot.wait()

    def _in_boot(self, fact: object) -> object:
        assert self._boot is not None
        assert self._boot.poll() is None, self.log.read_text(errors="replace")[-_SHOWN_CHARACTERS:]
        return fact


@dataclass(frozen=True, slots=True)
class Worker:
    """A task that runs, in a directory of its own."""

    run_id: str
    folder: Path

    def began(self) -> bool:
        return (self.folder / "pid").exists()

    def go(self) -> None:
        """Let it end, if it waits until it may."""
        (self.folder / "go").touch()


@contextmanager
def a_machine(systemd: Path = _SYSTEMD, patience: float = PATIENCE) -> Generator[Machine]:
    with a_place() as root, _a_cgroup() as cgroup:
        root.chmod(0o755)
        machine = Machine(root, cgroup)
        try:
            machine.boot(systemd, patience)
            yield machine
        finally:
            machine.halt()


def eventually(fact: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until something is true, looking at it every few milliseconds."""
    wait_until(fact, seconds, what)


def _prepare(machine: Machine) -> None:
    root, home = machine.root, machine.home
    entry = f"{_NAME}:x:{_UID}:{_UID}::{home}:/bin/sh\n"
    (root / "passwd").write_text(Path("/etc/passwd").read_text() + entry)
    (root / "group").write_text(Path("/etc/group").read_text() + f"{_NAME}:x:{_UID}:\n")
    (root / "console").touch()
    units = root / "units"
    units.mkdir()
    (units / "test.target").write_text(_TARGET.format(manager=_MANAGER_UNIT))
    names = {"name": _NAME, "uid": _UID, "home": home, "runtime": machine.runtime, "root": root}
    (units / _MANAGER_UNIT).write_text(_MANAGER.format(**names, systemd=_SYSTEMD))
    conf = home / ".config" / "systemd"
    conf.mkdir(parents=True)
    for path in (home, *home.rglob("*")):
        os.chown(path, _UID, _UID)


def _opened(*places: Path) -> str:
    """Return what lets the user in to these places where only root may pass: in there only."""
    closed = {place.resolve(): above for place in places if (above := _closed(place.resolve()))}
    kept = {place: f"/run/opened/{number}" for number, place in enumerate(closed)}
    lines = [f"mkdir -p {at}; mount --rbind {place} {at}" for place, at in kept.items()]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {above}" for above in sorted({*closed.values()})]
    lines += [f"mkdir -p {place}; mount --rbind {at} {place}" for place, at in kept.items()]
    return "\n".join(lines)


def _closed(place: Path) -> Path | None:
    above = (folder for folder in reversed(place.parents) if not folder.stat().st_mode & 0o001)
    return next(above, None)


def _cgroup_root() -> Path | None:
    found = (path for path in CGROUPS if os.access(path / "cgroup.procs", os.W_OK))
    return next(found, None)


@contextmanager
def _a_cgroup() -> Generator[Path]:
    base = _cgroup_root()
    assert base is not None
    cgroup = base / f"crewd-test-{os.getpid()}-{secrets.token_hex(4)}"
    cgroup.mkdir()
    try:
        yield cgroup
    finally:
        eventually(lambda: _is_removed(cgroup), "the cgroup is empty")


def _separately(cgroup: Path, script: str, *, output: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Run this in namespaces of its own; nothing of it outlives us, nor the process returned."""
    separate = _SEPARATE.format(cgroup=cgroup, uid=_UID, then=script)
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "sh", "-c", separate],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )


def _child(pid: int) -> int:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def _is_systemd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink() == _SYSTEMD.resolve()
    except OSError:
        return False


def _is_removed(cgroup: Path) -> bool:
    """Remove a cgroup with all below it; its last processes may only just be ending."""
    try:
        for folder, _, _ in os.walk(cgroup, topdown=False):
            os.rmdir(folder)  # noqa: PTH106 - a plain call for each folder of a walk
    except OSError:
        return False
    return not cgroup.exists()
