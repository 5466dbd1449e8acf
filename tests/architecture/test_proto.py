"""The contract keeps the rules that clients rely on."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor

from crewd.v1 import ask_service_pb2, catalog_service_pb2, daemon_service_pb2, run_service_pb2
from tests.architecture.sources import ROOT, name
from tests.architecture.tools import BIN, complaints

FILES = sorted((ROOT / "proto").rglob("*.proto"))
MAX_FILE_LINES = 300
READS = ("Get", "List", "Watch", "Read", "Diagnose", "Validate")
METHODS: list[MethodDescriptor] = [
    method
    for module in (run_service_pb2, ask_service_pb2, catalog_service_pb2, daemon_service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def named(*prefixes: str) -> list[MethodDescriptor]:
    return [method for method in METHODS if method.name.startswith(prefixes)]


def numbers(message: Descriptor) -> dict[str, int]:
    return {field.name: field.number for field in message.fields}


def test_contract_passes_buf_lint() -> None:
    assert complaints(BIN / "buf", "lint", "proto") == ""


def test_contract_is_laid_out_by_buf() -> None:
    assert complaints(BIN / "buf", "format", "--diff", "--exit-code", "proto") == ""


@pytest.mark.parametrize("file", FILES, ids=name)
def test_file_is_small(file: Path) -> None:
    assert file.read_text().count("\n") <= MAX_FILE_LINES


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_every_write_and_no_read_takes_a_request_id(method: MethodDescriptor) -> None:
    expected = None if method.name.startswith(READS) else 1
    assert numbers(method.input_type).get("request_id") == expected


@pytest.mark.parametrize("method", named("List"), ids=lambda m: m.name)
def test_every_list_is_paged(method: MethodDescriptor) -> None:
    assert {"page_size", "page_token"} <= numbers(method.input_type).keys()
    # What is read from files has no place in the log.
    in_log = method.containing_service.name != "CatalogService"
    expected = {"next_page_token", "as_of_sequence"} if in_log else {"next_page_token"}
    assert expected <= numbers(method.output_type).keys()


@pytest.mark.parametrize("method", named("WatchRun", "ListEvents"), ids=lambda m: m.name)
def test_events_are_field_1_for_they_are_framed_by_hand(method: MethodDescriptor) -> None:
    fields = numbers(method.output_type)
    assert fields.get("events", fields.get("runs")) == 1


@pytest.mark.parametrize("method", named("Watch"), ids=lambda m: m.name)
def test_every_watch_beats_and_says_when_it_drains(method: MethodDescriptor) -> None:
    assert {"heartbeat", "draining"} <= numbers(method.output_type).keys()
