"""Runs of one `pi` task, for tests of the adapter."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from crewd_client.v1.spec_pb2 import TaskSpec
from tests.support.desk import Desk, retries
from tests.support.pi import BIN, MISSING, MODEL, configure

needs_pi = pytest.mark.skipif(bool(MISSING), reason=MISSING)


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
