"""The real `pi`, as `make .venv/agents/ready` installs it, with a scripted model behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

BIN: Final = Path(__file__).parents[2] / ".venv" / "agents" / "node_modules" / ".bin"
"""A folder for PATH: `pi`, and the `node` it needs."""
_INSTALL: Final = "run `make .venv/agents/ready` (it needs npm and its registry)"
MISSING: Final = (
    ""
    if (BIN / "pi").exists() and (BIN / "node").exists()
    else f"the real pi is not installed: {_INSTALL}"
)

MODEL: Final = "scripted/scripted"


def configure(folder: Path, base_url: str) -> dict[str, str]:
    """Write pi's own configuration with one provider; return the variables that point to it."""
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": "dummy-not-a-secret",
        "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
        "models": [
            {
                "id": "scripted",
                "name": "Scripted",
                "reasoning": False,
                "input": ["text"],
                "contextWindow": 128000,
                "maxTokens": 8000,
                "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
            }
        ],
    }
    (folder / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
    (folder / "settings.json").write_text(json.dumps({"enableInstallTelemetry": False}))
    return {
        "PI_CODING_AGENT_DIR": str(folder),
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }
