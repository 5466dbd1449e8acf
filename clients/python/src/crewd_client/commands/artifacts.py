"""`crew artifacts`: what a run keeps."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from io import RawIOBase
from pathlib import Path

import click

from crewd_client.client import Client
from crewd_client.commands.exits import Exit, Refusal
from crewd_client.commands.pick import PAGE, pick_run
from crewd_client.commands.session import Session, json_option
from crewd_client.commands.terminal import Sink, note, put_json, put_table, size, word
from crewd_client.json import to_json
from crewd_client.pages import list_artifacts
from crewd_client.v1.artifact_pb2 import Artifact
from crewd_client.v1.run_artifact_pb2 import ReadArtifactRequest
from crewd_client.watch import read_artifact

_HEADS = ("ARTIFACT", "TASK", "TRY", "KIND", "SIZE", "NAME")
_ID = re.compile(r"art_[a-z2-7]{10}")


@click.command()
@click.argument("run", required=False)
@click.argument("name", required=False)
@click.option(
    "-o", "--output", "file", type=click.Path(), metavar="FILE", help="Write it to FILE instead."
)
@json_option
@click.pass_obj
def artifacts(
    session: Session, /, run: str | None, name: str | None, *, file: str | None, as_json: bool
) -> int:
    """List what RUN keeps, or print the artifact called NAME, or of that id.

    Without RUN: what the newest run of this directory keeps.
    """
    if name is None and run is not None and _ID.fullmatch(run):
        name = run
    if name is None and file is not None:
        raise Refusal("-o needs the name of an artifact", hint="crew artifacts RUN")

    async def work(client: Client) -> int:
        if name is None:
            await _list(client, await pick_run(client, run), as_json=as_json)
            return Exit.DONE
        request = ReadArtifactRequest(artifact_id=name)
        if not _ID.fullmatch(name):
            request = ReadArtifactRequest(run_id=await pick_run(client, run), name=name)
        if as_json and file is None:
            put_json(to_json(await _look(client, request)))
        elif file is None:
            sink = Sink()
            await _copy(client, request, sink.write)
            sink.finish()
        else:
            with _replacing(Path(file)) as write:
                await _copy(client, request, write)
        return Exit.DONE

    return session.perform(work)


async def _list(client: Client, run_id: str, *, as_json: bool) -> None:
    found = [each async for each in list_artifacts(client, run_id, page_size=PAGE)]
    if as_json:
        for artifact in found:
            put_json(to_json(artifact))
    elif found:
        put_table(_HEADS, [_cells(artifact) for artifact in found])
    else:
        note("no artifacts")


def _cells(artifact: Artifact) -> list[str]:
    return [
        artifact.id,
        artifact.task_id,
        str(artifact.attempt or ""),
        word(artifact, "kind"),
        size(artifact.size_bytes),
        artifact.name,
    ]


async def _look(client: Client, request: ReadArtifactRequest) -> Artifact:
    request.limit = 1
    parts = [part async for part in read_artifact(client, request)]
    return parts[0].artifact


async def _copy(
    client: Client, request: ReadArtifactRequest, write: Callable[[bytes], object]
) -> None:
    """Write all of it; say so when that is not what was kept."""
    artifact, digest = Artifact(), sha256()
    async for part in read_artifact(client, request):
        artifact = part.artifact if part.HasField("artifact") and not artifact.id else artifact
        if part.truncated_before:
            note("… some of it is no longer kept …")
        digest.update(part.data)
        write(part.data)
    if artifact.sha256 and digest.hexdigest() != artifact.sha256:
        raise Refusal(f"{artifact.id} is not what was kept: its digest differs", code=Exit.FAILED)


@contextmanager
def _replacing(file: Path) -> Generator[Callable[[bytes], object]]:
    """Give what writes the file: whole or not at all, unless it is none, like /dev/null."""
    special = file.exists() and not file.is_file()
    draft = file if special else file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with _writing(file):
            target = draft.open("wb", buffering=0)
        with target:
            yield partial(_write, target, file)
        if not special:
            with _writing(file):
                draft.replace(file)
    finally:
        if not special:
            with suppress(OSError):
                draft.unlink()


def _write(target: RawIOBase, file: Path, data: bytes) -> None:
    with _writing(file):
        view = memoryview(data)
        while view:
            view = view[target.write(view) or 0 :]


@contextmanager
def _writing(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        message = f"cannot write to {file}: {error.strerror}"
        raise Refusal(message, code=Exit.FAILED) from None
