"""Requests to create runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crewd.v1 import run_service_pb2 as pb
from crewd.v1 import spec_pb2


def a_task(task_id: str, *, command: str = "true", needs: Sequence[str] = ()) -> spec_pb2.TaskSpec:
    return spec_pb2.TaskSpec(id=task_id, command=[command], depends_on=needs)


def a_request(
    cwd: Path,
    *tasks: spec_pb2.TaskSpec,
    request_id: str = "",
    validate_only: bool = False,
) -> pb.CreateRunRequest:
    """Return a request that is fine unless a task is not."""
    return pb.CreateRunRequest(
        request_id=request_id,
        validate_only=validate_only,
        spec=spec_pb2.RunSpec(
            goal="measure\nand report",
            tasks=tasks or [a_task("build")],
            workspace=spec_pb2.WorkspaceSpec(cwd=str(cwd)),
        ),
        env=pb.ClientEnv(path="/usr/bin:relative:/bin"),
    )
