from __future__ import annotations

import json
from hashlib import sha256

from grpc import StatusCode

from crewd_client import Client, list_artifacts, read_artifact
from crewd_client.commands.lines import summary
from crewd_client.commands.terminal import size
from crewd_client.v1.artifact_event_pb2 import ArtifactRecorded
from crewd_client.v1.artifact_pb2 import ARTIFACT_KIND_FILE, ARTIFACT_KIND_REPORT, Artifact
from crewd_client.v1.event_pb2 import Event
from crewd_client.v1.run_artifact_pb2 import ReadArtifactRequest
from crewd_client.v1.run_pb2 import Run, Workspace
from tests.clients.support.crew import AtTerminal, crew, environment
from tests.clients.support.fake_daemon import RUN, FakeDaemon
from tests.clients.support.wire import RefusedError

ART = "art_cccccccccc"
DATA = bytes(range(256)) * 2


def keeps(daemon: FakeDaemon, data: bytes = DATA, *, digest: str = "") -> None:
    """Let the daemon have a run with three artifacts, whose last has these bytes."""
    daemon.add_run(Run())
    daemon.artifact_bytes = data
    told = digest or sha256(data).hexdigest()
    daemon.artifacts = [
        Artifact(id=f"art_{name * 10}", task_id="a", attempt=1, name="old", kind=ARTIFACT_KIND_FILE)
        for name in "ab"
    ]
    daemon.artifacts.append(
        Artifact(
            id=ART,
            run_id=RUN,
            task_id="b",
            attempt=2,
            name="report \x1b[2J.md",
            kind=ARTIFACT_KIND_REPORT,
            size_bytes=len(data),
            sha256=told,
        )
    )


async def test_what_a_run_keeps_is_a_table_or_json_lines(daemon: FakeDaemon) -> None:
    keeps(daemon)
    table = await crew(daemon, "artifacts", RUN)
    lines = await crew(daemon, "artifacts", RUN, "--json")
    assert table.out.splitlines()[0].split() == ["ARTIFACT", "TASK", "TRY", "KIND", "SIZE", "NAME"]
    assert table.out.splitlines()[3] == f"{ART}  b     2    report  512 B  report .md"
    shown = [json.loads(line) for line in lines.out.splitlines()]
    assert [each["kind"] for each in shown] == ["file", "file", "report"]
    assert (shown[2]["id"], shown[2]["size_bytes"]) == (ART, 512)


async def test_without_a_run_it_is_the_newest_of_this_directory(daemon: FakeDaemon) -> None:
    keeps(daemon)
    daemon.runs[RUN].workspace.CopyFrom(Workspace(cwd=str(daemon.state_dir)))
    done = await crew(daemon, "artifacts")
    assert (done.code, ART in done.out) == (0, True)
    assert daemon.requests("ListArtifacts")[0].run_id == RUN


async def test_without_artifacts_nothing_is_printed(daemon: FakeDaemon) -> None:
    daemon.add_run(Run())
    done = await crew(daemon, "artifacts", RUN)
    assert (done.code, done.out, done.err) == (0, "", "no artifacts\n")


async def test_one_is_printed_byte_for_byte_by_its_name_or_id(daemon: FakeDaemon) -> None:
    text = "grüße\r\n\x1b[2J\n".encode()
    keeps(daemon, text)
    for words in (("report \x1b[2J.md",), (ART,), ()):
        done = await crew(daemon, "artifacts", RUN if words else ART, *words)
        assert (done.code, done.out.encode()) == (0, text)
    named = daemon.requests("ReadArtifact")[0]
    assert (named.run_id, named.name, named.artifact_id) == (RUN, "report \x1b[2J.md", "")
    resource = await crew(daemon, "artifacts", RUN, ART, "--json")
    assert json.loads(resource.out)["id"] == ART


async def test_a_file_is_written_whole_or_not_at_all(daemon: FakeDaemon) -> None:
    keeps(daemon)
    place = daemon.state_dir / "out"
    place.mkdir()
    (place / "a.bin").write_text("before")
    done = await crew(daemon, "artifacts", RUN, ART, "-o", "a.bin", cwd=place)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (place / "a.bin").read_bytes() == DATA

    keeps(daemon, digest="0" * 64)
    done = await crew(daemon, "artifacts", RUN, ART, "-o", "a.bin", cwd=place)
    assert (done.code, "digest" in done.err) == (1, True)
    assert (place / "a.bin").read_bytes() == DATA
    assert [path.name for path in place.iterdir()] == ["a.bin"]
    done = await crew(daemon, "artifacts", RUN, ART, "-o", "missing/a.bin", cwd=place)
    assert (done.code, "cannot write to missing/a.bin" in done.err) == (1, True)
    keeps(daemon)
    assert (await crew(daemon, "artifacts", RUN, ART, "-o", "/dev/null")).code == 0


async def test_mistakes_are_told(daemon: FakeDaemon) -> None:
    keeps(daemon)
    done = await crew(daemon, "artifacts", RUN, "nothing")
    assert (done.code, "crew artifacts RUN" in done.err) == (6, True)
    assert (await crew(daemon, "artifacts", RUN, "-o", "a")).code == 2
    assert (await crew(daemon, "artifacts", "-o", "a")).code == 2
    assert "there is no run of" in (await crew(daemon, "artifacts")).err


async def test_a_terminal_is_not_steered_by_an_artifact(daemon: FakeDaemon) -> None:
    keeps(daemon, b"one\x1b[2J two\n")
    terminal = await AtTerminal.start(daemon, "artifacts", ART)
    await terminal.sees("one two")
    assert await terminal.ends() == 0


async def test_a_read_goes_on_where_it_broke_off(daemon: FakeDaemon) -> None:
    keeps(daemon)
    async with await Client.connect(env=environment(daemon.state_dir)) as client:
        daemon.refusals["ReadArtifact"] = [
            RefusedError(StatusCode.UNAVAILABLE, "DRAINING", "about to exit")
        ]
        request = ReadArtifactRequest(run_id=RUN, name="report \x1b[2J.md", offset=6, limit=20)
        parts = [part async for part in read_artifact(client, request)]
        assert b"".join(part.data for part in parts) == DATA[6:26]
        listed = [artifact.id async for artifact in list_artifacts(client, RUN)]
    assert listed == [artifact.id for artifact in daemon.artifacts]


def test_a_recorded_artifact_is_told_in_a_line() -> None:
    artifact = Artifact(id=ART, name="plan.md", size_bytes=2048)
    event = Event(kind="artifact_recorded", artifact_recorded=ArtifactRecorded(artifact=artifact))
    assert summary(event) == f"{ART} plan.md (2.0 KiB)"


def test_sizes_are_short() -> None:
    sizes = (0, 1023, 1024, 10 << 10, 268435456, 5 << 40)
    assert [size(count) for count in sizes] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "10 KiB",
        "256 MiB",
        "5120 GiB",
    ]
