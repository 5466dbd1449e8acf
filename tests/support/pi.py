"""The real `pi`, as `make .venv/agents/ready` installs it, with a scripted model behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.json_format import ParseDict

from crewd_client.v1.spec_pb2 import TaskSpec
from tests.support.desk import Desk, retries

BIN: Final = Path(__file__).parents[2] / ".venv" / "agents" / "node_modules" / ".bin"
"""A folder for PATH: `pi`, and the `node` it needs."""
_INSTALL: Final = "run `make .venv/agents/ready` (it needs npm and its registry)"
MISSING: Final = (
    ""
    if (BIN / "pi").exists() and (BIN / "node").exists()
    else f"the real pi is not installed: {_INSTALL}"
)

needs_pi = pytest.mark.skipif(bool(MISSING), reason=MISSING)

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


class PiDesk:
    """Submits runs of one `pi` task; the prompt's marker says what its model does."""

    def __init__(self, desk: Desk, base_url: str) -> None:
        self.desk = desk
        self._env = configure(desk.root / "pi", base_url)

    async def submit(
        self,
        prompt: str,
        *,
        schema: dict[str, Any] | None = None,
        model: str = MODEL,
        attempts: int = 1,
    ) -> str:
        task = TaskSpec(id="a", adapter="pi", command=["pi"], prompt=prompt, model=model)
        task.env.update(self._env)
        if schema is not None:
            ParseDict(schema, task.output.schema)
        request = self.desk.request(task, retry=retries(attempts))
        request.env.path = f"{BIN}:/usr/bin:/bin"
        return (await self.desk.client.runs.CreateRun(request)).run.id
