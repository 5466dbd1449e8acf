"""Generated code is what the contract says."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.architecture.sources import ROOT
from tests.architecture.tools import complaints

MODULES = sorted(path.stem for path in (ROOT / "crewd" / "v1").glob("*_pb2.py"))


def test_generated_code_is_fresh() -> None:
    assert complaints(sys.executable, "proto/generate.py", "--check") == ""


@pytest.mark.parametrize("module", MODULES)
def test_daemon_and_client_share_their_messages_in_one_process(module: str) -> None:
    daemon = importlib.import_module(f"crewd.v1.{module}")
    client = importlib.import_module(f"crewd_client.v1.{module}")

    assert daemon.DESCRIPTOR is client.DESCRIPTOR
    for message in daemon.DESCRIPTOR.message_types_by_name:
        assert getattr(daemon, message) is getattr(client, message)
