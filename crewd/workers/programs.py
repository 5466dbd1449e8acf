"""The agent programs crewd knows by name, and how a person gets one that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

INSTALL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pi": "npm install -g @earendil-works/pi-coding-agent",
        "codex": "npm install -g @openai/codex",
        "gemini": "npm install -g @google/gemini-cli",
        "opencode": "npm install -g opencode-ai",
    }
)
"""By program, the command that installs it."""
