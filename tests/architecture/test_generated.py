"""Generated code is what the contract says."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.architecture.sources import ROOT
from tests.architecture.tools import complaints

MODULES = sorted(path.stem for path in (ROOT / "crewd" / "v1").glob("*_pb2.py"))


GENERATORS = {
    "python": ROOT / "proto" / "generate.py",
    "typescript": ROOT / "clients" / "typescript" / "node_modules" / ".bin" / "protoc-gen-es",
    "go": ROOT / ".venv" / "go" / "protoc-gen-go-grpc",
}


@pytest.mark.parametrize("language", GENERATORS)
def test_generated_code_is_fresh(language: str) -> None:
    if not GENERATORS[language].exists():
        pytest.skip(f"no generator for {language}: `make proto` installs it with npm and go")
    assert complaints(sys.executable, "proto/generate.py", "--check", "--only", language) == ""


@pytest.mark.parametrize("module", MODULES)
def test_daemon_and_client_share_their_messages_in_one_process(module: str) -> None:
    daemon = importlib.import_module(f"crewd.v1.{module}")
    client = importlib.import_module(f"crewd_client.v1.{module}")

    assert daemon.DESCRIPTOR is client.DESCRIPTOR
    for message in daemon.DESCRIPTOR.message_types_by_name:
        assert getattr(daemon, message) is getattr(client, message)
