"""Keys of a file, read as what they should be; everything else is a problem."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from crewd.catalog.findings import Findings, did_you_mean, shown
from crewd.catalog.nodes import Entries, Items, Node, Scalar

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FLAGS: Final = {"true": True, "false": False}
_NUMBER: Final = re.compile(r"[+-]?\d{1,9}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SKILL: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def spelled(key: str) -> str:
    """Return the one spelling of a key: `maxTurns` and `max-turns` are `max_turns`."""
    return _HUMP.sub("_", key).replace("-", "_").lower()


def words_of(text: str) -> tuple[str, ...]:
    """Split at commas; double quotes keep them. Empty items and duplicates do not count."""
    parts: list[str] = [""]
    quoted = False
    for char in text:
        if char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    return unique(part.strip() for part in parts)


def unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))


def is_skill_name(name: str) -> bool:
    """Tell whether a skill can be called so; a name is never a path."""
    return _SKILL.fullmatch(name) is not None


class Fields:
    """The keys of one mapping. Each is asked for by its one spelling; `finish` tells the rest."""

    def __init__(self, entries: Entries | None, findings: Findings) -> None:
        self.findings = findings
        self._given: dict[str, tuple[Scalar, Node]] = {}
        self._asked: dict[str, None] = {}
        for key, value in entries.entries if entries else ():
            name = spelled(key.text)
            if name in self._given:
                line = self._given[name][0].line
                findings.warn(
                    key.line,
                    f"the key {shown(key.text)} is there twice; this one counts",
                    f"remove the one in line {line}",
                )
            self._given[name] = key, value

    def line(self, name: str) -> int:
        return self._given[name][0].line if name in self._given else 1

    def has(self, name: str) -> bool:
        """Tell whether the key is there, be it without a value."""
        return name in self._given

    def node(self, *names: str) -> Node | None:
        """Return the value under the first of the names; None when it is empty."""
        self._asked.update(dict.fromkeys(names))
        found = next((self._given[name][1] for name in names if name in self._given), None)
        return None if isinstance(found, Scalar) and found.is_null else found

    def text(self, *names: str) -> str:
        """Return the text; empty when it is not there, or is no text."""
        node = self.node(*names)
        if node is None:
            return ""
        if not isinstance(node, Scalar):
            self._wrong(names[0], node, "text")
            return ""
        return node.text.strip()

    def flag(self, *names: str) -> bool | None:
        node = self.node(*names)
        if node is None:
            return None
        value = _FLAGS.get(node.text.lower()) if isinstance(node, Scalar) else None
        if value is None:
            self._wrong(names[0], node, "true or false")
        return value

    def count(self, *names: str) -> int | None:
        """Return a whole number above 0."""
        node = self.node(*names)
        if node is None:
            return None
        if isinstance(node, Scalar) and _NUMBER.fullmatch(node.text) and int(node.text) > 0:
            return int(node.text)
        self._wrong(names[0], node, "a whole number above 0")
        return None

    def choice(self, choices: Collection[str], *names: str) -> str:
        text = self.text(*names)
        if not text or text.lower() in choices:
            return text.lower()
        known = ", ".join(choices)
        fix = did_you_mean(text.lower(), choices)
        self.findings.error(self._line(names), f"{names[0]}: {shown(text)} is none of {known}", fix)
        return ""

    def words(self, *names: str) -> tuple[str, ...]:
        """Return a list, written with commas or as a YAML list."""
        node = self.node(*names)
        if node is None:
            return ()
        if isinstance(node, Scalar):
            return words_of(node.text)
        return unique(word.strip() for word in self._items(names[0], node))

    def arguments(self, *names: str) -> tuple[str, ...]:
        """Return a program and its arguments, as a YAML list or as one types them in a shell."""
        node = self.node(*names)
        if isinstance(node, Scalar):
            try:
                return tuple(shlex.split(node.text))
            except ValueError as error:
                self.findings.error(node.line, f"{names[0]}: {error}", "write it as a list")
                return ()
        return () if node is None else tuple(self._items(names[0], node))

    def variables(self, *names: str) -> tuple[str, ...]:
        words = self.words(*names)
        for word in words:
            if not _VARIABLE.fullmatch(word):
                line = self._line(names)
                self.findings.error(line, f"{names[0]}: {shown(word)} is no name of a variable")
        return words

    def skills(self, *names: str) -> tuple[tuple[str, ...], bool]:
        """Return the names, and whether the role's own skills are given too (not with `false`)."""
        node = self.node(*names)
        if isinstance(node, Scalar) and node.plain and node.text.lower() in _FLAGS:
            return (), _FLAGS[node.text.lower()]
        words = self.words(*names)
        for word in words:
            if not is_skill_name(word):
                fix = "use letters, digits, - and _"
                self.findings.error(
                    self._line(names), f"{names[0]}: {shown(word)} is no name of a skill", fix
                )
        return words, True

    def finish(self, without_effect: Collection[str] = (), forbidden: Collection[str] = ()) -> None:
        """Tell of keys that nobody asked for."""
        known = list(self._asked)
        for name, (key, _) in self._given.items():
            if name in self._asked:
                continue
            if name in forbidden:
                fix = "remove it; only a user's file may have it"
                self.findings.warn(key.line, f"{shown(key.text)} is not allowed here", fix)
            elif name in without_effect:
                self.findings.warn(key.line, f"{shown(key.text)} has no effect", "remove it")
            else:
                fix = did_you_mean(name, known) or "remove it"
                self.findings.warn(key.line, f"unknown key {shown(key.text)}", fix)

    def _items(self, name: str, node: Node) -> list[str]:
        if isinstance(node, Items):
            items = [item.text for item in node.items if isinstance(item, Scalar)]
            if len(items) == len(node.items):
                return items
        self._wrong(name, node, "a list of words")
        return []

    def _line(self, names: Iterable[str]) -> int:
        return next((self._given[name][0].line for name in names if name in self._given), 1)

    def _wrong(self, name: str, node: Node, expected: str) -> None:
        given = shown(node.text) if isinstance(node, Scalar) else _KINDS[type(node)]
        self.findings.error(node.line, f"{name}: {expected} is expected, not {given}")


_KINDS: Final[Mapping[type, str]] = {Items: "a list", Entries: "a mapping"}
