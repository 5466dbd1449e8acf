"""The user units of systemd that keep the daemon and its host: what they say, and where they are.

The units that come with crewd are in order as they are for `~/.local/bin/crewd` and the usual state
directory; those of an installation name its own command and directory instead.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crewd.paths import config_dir
from crewd.refusal import Refusal, refusing

UNIT = "crewd.service"
HOST_UNIT = "crewd-host.service"
SANDBOX = "crewd.service.d/sandbox.conf"
"""The part of the hardening that not every system allows."""

_ALL = (SANDBOX, UNIT, HOST_UNIT)

_FILES = Path(__file__).parent / "unit_files"
_COMMAND = "%h/.local/bin/crewd"
_STATE_DIR = "%h/.local/state/crewd"
_MARK = "# Made by `crewd service install`; to change it: systemctl --user edit"
_WANTED_BY = "default.target.wants"
# What a user's shell may set and a user's service manager may not know.
_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@+,=~%$-]+")
_NOT_IN_COMMANDS = "\"'\\"
_NAMED_STATE_DIR = re.compile(r"^ExecStart=.* --state-dir (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What units are to start, for whom."""

    command: tuple[str, ...]
    state_dir: Path
    env: Mapping[str, str]

    def texts(self, *, sandbox: bool) -> dict[str, str]:
        """Return the text of each unit file, by its place below the folder of units."""
        names = {UNIT: UNIT, HOST_UNIT: HOST_UNIT}
        if sandbox:
            names[SANDBOX] = Path(SANDBOX).name
        return {place: self._text(_shipped(name)) for place, name in names.items()}

    def _text(self, shipped: str) -> str:
        if any(character in self.command[0] for character in _NOT_IN_COMMANDS):
            raise _unnameable(self.command[0])
        state_dir = str(self.state_dir)
        command = " ".join(map(_quoted, self.command))
        text = shipped.replace(f"-{_STATE_DIR}", _quoted(f"-{state_dir}"))
        text = text.replace(_STATE_DIR, _quoted(state_dir).replace("$", "$$"))
        if _COMMAND not in text:
            return f"{_MARK}\n{text}"
        given = (f"{name}={self.env[name]}" for name in _PLACES if self.env.get(name))
        service = "\n".join(("[Service]", *(f"Environment={_quoted(each)}" for each in given)))
        text = text.replace(_COMMAND, command).replace("[Service]", service, 1)
        return f"{_MARK}\n{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The units that a user has."""

    folder: Path
    state_dir: Path | None
    """Whose daemon they start; None: they do not say so in our way."""
    enabled: bool
    """The unit is started with the first login, or at boot where the user lingers."""
    sandbox: bool


def this_command() -> tuple[str, ...]:
    """Return how the `crewd` of this installation is called from anywhere."""
    # Not resolved: the interpreter of a virtual environment is a link, and its place decides.
    beside = Path(sys.executable).with_name("crewd")
    if os.access(beside, os.X_OK):
        return (str(beside),)
    return (sys.executable, "-P", "-m", "crewd.cli")


def this_installation(state_dir: Path, env: Mapping[str, str]) -> Installation:
    return Installation(command=this_command(), state_dir=state_dir, env=env)


def unit_folder(env: Mapping[str, str]) -> Path:
    """Return where a user's own units are."""
    return config_dir(env).parent / "systemd" / "user"


def find_installed(env: Mapping[str, str]) -> Installed | None:
    """Return what the user has, whoever wrote it; None: there is no unit of ours."""
    folder = unit_folder(env)
    file = folder / UNIT
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(f"cannot read {file}: {error.strerror}") from error
    return Installed(
        folder=folder,
        state_dir=_state_dir_in(text, env),
        enabled=(folder / _WANTED_BY / UNIT).is_symlink(),
        sandbox=(folder / SANDBOX).exists(),
    )


def find_installed_for(state_dir: Path, env: Mapping[str, str]) -> Installed | None:
    """Return what the user has, if it is to keep the daemon of this state directory."""
    installed = find_installed(env)
    return installed if installed is not None and installed.state_dir == state_dir else None


def foreign(folder: Path) -> list[Path]:
    """Return what is in the place of a file of ours, and is not one that `write` has written."""
    return [file for place in _ALL if (file := _foreign(folder, place)) is not None]


def differing(installed: Installed, installation: Installation) -> list[str]:
    """Return the unit files that are not as this installation would write them."""
    wanted = installation.texts(sandbox=installed.sandbox)
    return [place for place, text in wanted.items() if _read(installed.folder / place) != text]


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the unit files, and take away the sandbox if it is not among them."""
    for place, text in texts.items():
        file = folder / place
        with refusing("cannot write", file):
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(f".{file.name}.{os.getpid()}")
            draft.write_text(text, encoding="utf-8")
            draft.replace(file)
    if SANDBOX not in texts:
        _remove(folder, SANDBOX)


def remove(folder: Path) -> None:
    """Remove what `write` wrote."""
    for place in _ALL:
        _remove(folder, place)


def sandbox_properties() -> list[str]:
    """Return the settings of the sandbox that say nothing of our own places."""
    lines = _shipped(Path(SANDBOX).name).splitlines()
    return [line for line in lines if "=" in line and line[0].isupper() and _STATE_DIR not in line]


def _shipped(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _foreign(folder: Path, place: str) -> Path | None:
    file = folder / place
    # A link is a person's, wherever it leads: to a file of theirs, or to nothing for a masked unit.
    for path in (file.parent, file):
        if path != folder and path.is_symlink():
            return path
    try:
        is_ours = file.read_text(encoding="utf-8", errors="replace").startswith(_MARK)
    except FileNotFoundError:
        return None
    except OSError:  # Not a file, or not one that we may read: in no case have we written it.
        return file
    return None if is_ours else file


def _remove(folder: Path, place: str) -> None:
    file = folder / place
    with refusing("cannot remove", file):
        file.unlink(missing_ok=True)
        if file.parent != folder and file.parent.is_dir() and not any(file.parent.iterdir()):
            file.parent.rmdir()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _quoted(text: str) -> str:
    """Return a word as systemd reads it; see "Quoting" in systemd.syntax(7)."""
    if not text.isprintable():
        raise _unnameable(text)
    text = text.replace("%", "%%")
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unnameable(path: str) -> Refusal:
    return Refusal(f"a unit of systemd cannot name {path!r}", hint="choose another directory")


def _state_dir_in(text: str, env: Mapping[str, str]) -> Path | None:
    found = _NAMED_STATE_DIR.search(text)
    try:
        words = shlex.split(found[1]) if found is not None else []
    except ValueError:
        return None
    if len(words) != 1:
        return None
    home = env.get("HOME") or str(Path.home())
    named = re.sub(r"%%|%h|\$\$", lambda part: home if part[0] == "%h" else part[0][0], words[0])
    return Path(named).resolve() if named.startswith("/") else None
