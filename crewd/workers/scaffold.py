"""The `scaffold` adapter: no process. The core completes its tasks by itself, saying so."""

from __future__ import annotations

from typing import Final

from crewd.core.messages import scaffold_text
from crewd.core.model import Capabilities, Result, Task

NAME: Final = "scaffold"
CAPABILITIES: Final = Capabilities()


def result_of(task: Task) -> Result:
    return Result(text=scaffold_text(task))
