"""Lines of Markdown that are not inside a code fence, and headings among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_LEVELS: Final = 6
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def outside_fences(text: str, first_line: int = 1) -> Iterator[tuple[int, str]]:
    """Give the lines with their numbers; the fences themselves are not among them."""
    fence = ""
    for number, line in enumerate(text.split("\n"), first_line):
        found = _FENCE.fullmatch(line.rstrip())
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1].startswith("`") and "`" in found[2]):
            fence = found[1]
        else:
            yield number, line


def heading(line: str, level: int = 0) -> str:
    """Return the title of a heading, of any level or of this one; empty when it is none."""
    marks = len(line) - len(line.lstrip("#"))
    wanted = marks == level if level else 1 <= marks <= _LEVELS
    rest = line[marks:]
    return rest.strip().rstrip("#").rstrip() if wanted and rest[:1] in {" ", "\t"} else ""
