"""The front matter of a Markdown file: YAML between two `---` lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewd.catalog import nodes
from crewd.catalog.findings import Findings
from crewd.catalog.nodes import Entries, NodeError

_FENCE: Final = "---"
_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class Document:
    """A file in its two parts."""

    head: Entries | None
    """None: it has no front matter."""
    body: str
    body_line: int = 1


def read(text: str, findings: Findings, *, lenient: bool = False) -> Document:
    """Split and parse. `lenient`: what is not YAML may be plain `key: value` lines."""
    lines = _lines(text)
    begin = next((n for n, line in enumerate(lines) if not _may_precede(line)), 0)
    if not lines or lines[begin].rstrip() != _FENCE:
        return Document(None, "\n".join(lines))
    end = next((n for n, line in enumerate(lines) if n > begin and line.rstrip() == _FENCE), None)
    if end is None:
        findings.error(
            begin + 1, "the front matter does not end", "add a line `---` after its last key"
        )
        return Document(None, "\n".join(lines))
    head = parsed("\n".join(lines[begin + 1 : end]), begin + 2, findings, lenient=lenient)
    return Document(head, "\n".join(lines[end + 1 :]), end + 2)


def _may_precede(line: str) -> bool:
    """Whether the front matter may come after it: nothing, or a comment of its own."""
    text = line.strip()
    return not text or (text.startswith("<!--") and text.endswith("-->"))


def parsed(text: str, line: int, findings: Findings, *, lenient: bool) -> Entries | None:
    """Return the keys; None when they cannot be read, which is a problem then."""
    try:
        return nodes.parse(text, line)
    except NodeError as error:
        if lenient:
            try:
                entries = nodes.parse_lines(text, line)
            except NodeError:
                pass
            else:
                fix = "write it as YAML: put values with `: ` or `#` in quotes"
                findings.warn(error.line, f"{error.message}; it was read line by line", fix)
                return entries
        findings.error(error.line, error.message, "see https://yaml.org; quote odd values")
        return None


def _lines(text: str) -> list[str]:
    text = text.removeprefix(_BOM)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text else []
