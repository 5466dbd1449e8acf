"""The adapters there are, by the name a task gives."""

from __future__ import annotations

from typing import Any, Final

from crewd.workers.adapter import Adapter
from crewd.workers.command import CommandAdapter
from crewd.workers.jsonl import JsonlAdapter
from crewd.workers.pi import PiAdapter

_ADAPTERS: Final[dict[str, Adapter[Any]]] = {
    a.name: a for a in (CommandAdapter(), JsonlAdapter(), PiAdapter())
}


def adapter_for(name: str) -> Adapter[Any]:
    """Return the adapter. LookupError for one that runs no process, or is unknown."""
    return _ADAPTERS[name]
