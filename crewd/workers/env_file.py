r"""The user's `env` file: variables that workers may be given without a spec naming their values.

A line is `NAME=value`, with `export ` before it or not; blank lines and those that begin with `#`
say nothing. A value without quotes ends with its line, or before a `#` that follows a space. In
single quotes it is taken as it stands; in double quotes `\n`, `\r`, `\t`, `\"`, `\\`, `\$` and a
backslash at the end of a line are replaced. Both may go over several lines. `$` has no meaning of
its own. Of two lines with one name the later counts. Anything else is refused by the number of its
line: a secret that is guessed wrong is worse than none.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 1 << 20
_ASSIGNMENT: Final = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
_NOTHING: Final = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_SINGLE: Final = re.compile(r"'([^']*)'")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN: Final = re.compile(r"[^\n]*")
_COMMENT: Final = re.compile(r"(?:^|[ \t])#.*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "\n": ""}


class EnvFileError(Exception):
    """The file cannot be used. The message says which file, why and what to do; never a value."""

    def __init__(self, path: Path, problem: str, *, command: str = "") -> None:
        self.command = command
        """Mends it; empty where only an editor does."""
        hint = f"; run: {command}" if command else ""
        super().__init__(f"{path} {problem}{hint}")


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of the file, none when it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise EnvFileError(path, f"cannot be read: {error.strerror}") from error
    try:
        _check(path, os.fstat(descriptor))
        data = os.read(descriptor, _MOST_BYTES)
    except OSError as error:
        raise EnvFileError(path, f"cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    try:
        return parse_env(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise EnvFileError(path, "is not UTF-8") from error
    except ValueError as error:
        raise EnvFileError(path, str(error)) from error


def parse_env(text: str) -> dict[str, str]:
    """Return the variables, or raise a ValueError that begins with the line's number."""
    text = text.replace("\r\n", "\n")
    if "\0" in text:
        raise _refused(text, text.index("\0"), "has a NUL character")
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        nothing = _NOTHING.match(text, place)
        if nothing is not None:
            place = nothing.end()
            continue
        name, value, place = _assignment(text, place)
        found[name] = value
    return found


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise EnvFileError(path, "is no plain file")
    if found.st_uid != os.geteuid():
        raise EnvFileError(path, "belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise EnvFileError(path, "can be read by others", command=f"chmod 600 {path}")
    if found.st_size >= _MOST_BYTES:
        raise EnvFileError(path, f"has {found.st_size} bytes; the most is {_MOST_BYTES - 1}")


def _assignment(text: str, start: int) -> tuple[str, str, int]:
    head = _ASSIGNMENT.match(text, start)
    if head is None:
        raise _refused(text, start, "is no NAME=value")
    name, place = head[1], head.end()
    quote = text[place : place + 1]
    if quote not in ("'", '"'):
        plain = _PLAIN.match(text, place)
        end = plain.end() if plain is not None else place
        return name, _COMMENT.sub("", text[place:end]).strip(), end + 1
    quoted = (_SINGLE if quote == "'" else _DOUBLE).match(text, place)
    if quoted is None:
        raise _refused(text, place, f"opens a {quote} that is never closed")
    rest = _NOTHING.match(text, quoted.end())
    if rest is None:
        raise _refused(text, quoted.end(), f"goes on after the closing {quote}")
    value = quoted[1] if quote == "'" else _ESCAPE.sub(_unescaped, quoted[1])
    return name, value, rest.end()


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[1], found[0])


def _refused(text: str, place: int, problem: str) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, place) + 1} {problem}")
