"""The stage as a runner has it: a process that is told one step a line."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.architecture.sources import ROOT
from tests.conformance.files import Step


class StageProcess:
    def __init__(self) -> None:
        command = (sys.executable, "-m", "tests.conformance.stage")
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._steps, self._replies = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, step: Step) -> Step:
        self.tell(step)
        return self.hear()

    def tell(self, step: Step) -> None:
        """Begin a step, and do not wait for its end."""
        self._steps.write(json.dumps(step).encode() + b"\n")
        self._steps.flush()

    def hear(self) -> Step:
        reply: Step = json.loads(self._replies.readline())
        assert "error" not in reply, f"the stage: {reply['error']}"
        return reply

    def close(self) -> int:
        """End it as a runner does, and give its exit code."""
        self._steps.close()
        return self.wait()

    def wait(self) -> int:
        code = self._process.wait()
        self._steps.close()
        self._replies.close()
        return code
