"""A small YAML: mappings, lists and scalars with their lines; no aliases, no tags, not deep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

MOST_DEPTH: Final = 8
MOST_CHARACTERS: Final = 16 * 1024
# Much faster, and there on nearly every machine.
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_ODD: Final = re.compile("[\0\ud800-\udfff]")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_LINE: Final = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?")


class NodeError(Exception):
    """The text is not what this YAML allows; lines count from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    line: int
    plain: bool = True
    """Written without quotes."""

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Items:
    line: int
    items: list[Node] = field(default_factory=list["Node"])


@dataclass(frozen=True, slots=True)
class Entries:
    line: int
    entries: list[tuple[Scalar, Node]] = field(default_factory=list[tuple[Scalar, "Node"]])
    """As written: a key may be there twice."""


Node: TypeAlias = "Scalar | Items | Entries"


def parse(text: str, first_line: int) -> Entries:
    """Return the mapping; an empty text is an empty one. Raises `NodeError`."""
    if len(text) > MOST_CHARACTERS:
        raise NodeError(first_line, f"it has more than {MOST_CHARACTERS} characters")
    try:
        node = _Builder(yaml.parse(text, Loader=_LOADER), first_line).document()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise NodeError(first_line + line, f"it is not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise NodeError(first_line, f"it is not valid YAML: {said[:200]}") from error
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return Entries(first_line)
    if not isinstance(node, Entries):
        raise NodeError(node.line, "it is no list of `key: value` lines")
    return node


def parse_lines(text: str, first_line: int) -> Entries:
    """Read plain `key: value` lines, as other programs write them. Raises `NodeError`."""
    entries: list[tuple[Scalar, Node]] = []
    for line, written in enumerate(text.split("\n"), first_line):
        if not written.strip() or written.lstrip().startswith("#"):
            continue
        found = _PLAIN_LINE.fullmatch(written.rstrip())
        if found is None:
            raise NodeError(line, "the line is no `key: value`")
        value = (found[2] or "").strip()
        if value.startswith(("[", "{")):
            raise NodeError(line, "the list or mapping does not end")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        entries.append((Scalar(found[1], line), Scalar(value, line)))
    return Entries(first_line, entries)


class _Builder:
    def __init__(self, events: Iterator[yaml.Event], first_line: int) -> None:
        self._events = events
        self._first_line = first_line

    def document(self) -> Node | None:
        node: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise NodeError(self._line(event), "it has more than one YAML document")
            elif isinstance(event, yaml.NodeEvent):
                node = self._node(event, 1)
        return node

    def _node(self, event: yaml.Event, depth: int) -> Node:
        line = self._line(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise NodeError(line, "it uses an anchor or alias (& or *)")
        if depth > MOST_DEPTH:
            raise NodeError(line, f"it is nested more than {MOST_DEPTH} deep")
        if isinstance(event, yaml.ScalarEvent):
            if _ODD.search(event.value):
                raise NodeError(line, "it has a character that no text may have")
            return Scalar(event.value, line, plain=not event.style)
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(line, self._items(depth))
        return Entries(line, self._entries(depth))

    def _items(self, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _entries(self, depth: int) -> list[tuple[Scalar, Node]]:
        entries: list[tuple[Scalar, Node]] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar):
                raise NodeError(key.line, "a key is no word")
            entries.append((key, value))
        return entries

    def _line(self, event: yaml.Event) -> int:
        mark = event.start_mark
        return self._first_line + (mark.line if mark is not None else 0)
