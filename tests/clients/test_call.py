"""`crew call`: any method of the daemon from the command line."""

from __future__ import annotations

import json

import pytest
from google.protobuf.descriptor import FileDescriptor

from crewd_client.v1 import (
    ask_service_pb2,
    catalog_service_pb2,
    daemon_service_pb2,
    run_service_pb2,
    worker_service_pb2,
)
from crewd_client.v1.run_pb2 import Run
from tests.clients.support.crew import crew
from tests.clients.support.fake_daemon import RUN, FakeDaemon

FILES: list[FileDescriptor] = [
    run_service_pb2.DESCRIPTOR,
    ask_service_pb2.DESCRIPTOR,
    catalog_service_pb2.DESCRIPTOR,
    daemon_service_pb2.DESCRIPTOR,
    worker_service_pb2.DESCRIPTOR,
]


async def test_one_answer_is_one_line_of_json(daemon: FakeDaemon) -> None:
    daemon.add_run(Run(id=RUN, title="it"))
    done = await crew(daemon, "call", "crewd.v1.RunService/GetRun", f'{{"run_id": "{RUN}"}}')
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert json.loads(done.out)["run"]["title"] == "it"


async def test_a_refusal_ends_with_6_and_its_reason(daemon: FakeDaemon) -> None:
    asked = ("call", "RunService/GetRun", '{"run_id": "run_zzzzzzzzzz"}', "--json")
    done = await crew(daemon, *asked)
    assert (done.code, done.out) == (6, "")
    assert json.loads(done.err)["error"]["reason"] == "RUN_NOT_FOUND"


async def test_a_stream_is_given_up_when_its_time_is_over(daemon: FakeDaemon) -> None:
    daemon.add_run(Run(id=RUN))
    asked = ("RunService/WatchRun", f'{{"run_id": "{RUN}"}}')
    done = await crew(daemon, "call", *asked, "--timeout", "0.5s")
    assert (done.code, done.err) == (124, "RunService/WatchRun went on for 0.5s\n")


async def test_without_a_method_all_are_listed(daemon: FakeDaemon) -> None:
    listed = await crew(daemon, "call", "--json")
    told = [json.loads(line) for line in listed.out.splitlines()]
    services = [service for file in FILES for service in file.services_by_name.values()]
    methods = {f"{each.name}/{method.name}": method for each in services for method in each.methods}
    assert {each["method"] for each in told} == methods.keys()
    assert {each["method"] for each in told if each["stream"]} == {
        name for name, method in methods.items() if method.server_streaming
    }
    assert daemon.calls == []


async def test_of_a_service_alone_its_methods_are_listed(daemon: FakeDaemon) -> None:
    listed = await crew(daemon, "call", "DaemonService")
    assert listed.out.splitlines()[:2] == [
        "METHOD                       ANSWER",
        "DaemonService/GetServerInfo  GetServerInfoResponse",
    ]


async def test_what_a_method_takes_is_described(daemon: FakeDaemon) -> None:
    told = await crew(daemon, "call", "RunService/CreateRun", "--describe", "--json")
    messages = {each["message"]: each["fields"] for each in map(json.loads, told.out.splitlines())}
    assert messages["CreateRunRequest"]["spec"] == "RunSpec"
    assert messages["RunSpec"]["tasks"] == "list of TaskSpec"
    assert messages["RunSpec"]["failure_mode"] == "fail_fast|continue"
    assert messages["RunSpec"]["labels"] == "object of string"
    assert messages["TaskSpec"]["timeout"] == 'duration, e.g. "1.5s"'
    assert messages["OutputSpec"] == {"name": "string", "schema": "object"}
    assert daemon.calls == []


async def test_a_description_reads_well(daemon: FakeDaemon) -> None:
    told = await crew(daemon, "call", "RunService/GetTask", "--describe")
    assert told.out == "GetTaskRequest\n  run_id   string\n  task_id  string\n"


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ("RunServic", "there is no service 'RunServic', did you mean 'RunService'?", "RunService,"),
        ("GetRun", "'GetRun' is a method without its service", "crew call RunService/GetRun"),
        ("RunService/GetRuns", "RunService has no method 'GetRuns', did you", "CreateRun,"),
    ],
)
async def test_a_name_that_is_wrong_is_told_with_what_is_near(
    daemon: FakeDaemon, given: str, message: str, hint: str
) -> None:
    done = await crew(daemon, "call", given)
    assert done.code == 2
    assert f"error: {message}" in done.err
    assert f"hint: {hint}" in done.err
