"""The one place where a live attempt's output is read: spool, lines, transcript, fold.

A reader is made from an attempt's row and goes on from what is committed there: bytes that were
read after the last commit are read again, and the transcript is cut back to the row and written
again, byte for byte the same. A reader that raised is done with; make another from the row.
Everything here blocks and belongs in a thread, one call at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_changes
from typing import Any, Final

import msgspec

from crewd.core.model import Artifact, Attempt, Result
from crewd.core.redaction.masking import Masking
from crewd.core.redaction.redactor import Redactor
from crewd.core.reports import (
    ArtifactGiven,
    ArtifactKept,
    Report,
    ResultGiven,
    Said,
    TurnEnded,
    Verdict,
    Warned,
)
from crewd.core.values import record
from crewd.core.words import ArtifactKind, OutboxKind
from crewd.workers.adapter import (
    RESULT_TEXT_BYTES,
    STDERR_TAIL_BYTES,
    Adapter,
    Exit,
    Line,
    NewId,
)
from crewd.workers.lines import Block, Splitter, Stream, lines_of
from crewd.workers.registry import adapter_for
from crewd.workers.text import cut, is_over, tail_text
from crewd.workers.transcript import Transcript

Read = Callable[[Stream, int, int], bytes]
"""`read(stream, offset, limit)`: bytes of the host's spool; b"" only at its end."""

Keep = Callable[[ArtifactGiven], Artifact | Warned]
"""Makes the bytes durable and returns the row to record, or says why it cannot be kept.

The result has no name of its own: the task may have one for it.
"""

NO_SECRETS_KNOWN: Final = Masking()

STEP_BYTES: Final = 1024 * 1024
"""Read of each stream in one step."""
FOLD_BYTES: Final = 256 * 1024
"""The same for a stream that is folded: one step's reports must stay a reasonable commit."""


@record
class Step:
    """What one step read; its first seven fields are those of `WorkerReported`."""

    stdout_offset: int
    stderr_offset: int
    stdout_bytes: int
    stderr_bytes: int
    adapter_state: str
    reports: tuple[Report, ...] = ()
    writes: tuple[tuple[OutboxKind, str], ...] = ()
    more: bool = False
    """The host has more than was read."""
    moved: bool = True
    """False when nothing changed: there is nothing to commit."""


class _Stored(msgspec.Struct, frozen=True):
    """The text of `adapter_state`."""

    skipping: tuple[Stream, ...] = ()
    """Streams whose offset is inside an oversize line."""
    inside: dict[Stream, int] = {}
    """Streams whose offset is inside a private key, and how much of it may follow."""
    fold: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(slots=True)
class _Found:
    reports: list[Report] = field(default_factory=list[Report])
    writes: list[tuple[OutboxKind, str]] = field(default_factory=list[tuple[OutboxKind, str]])
    moved: bool = False


class OutputReader:
    """Reads one attempt: `step` until there is no `more`; at its exit `flush`, then `finish`.

    The transcript must have the lengths of the row, as `Transcript.of` makes it.
    """

    def __init__(  # noqa: PLR0913 - what it reads, what it needs for that, what it must hide
        self,
        attempt: Attempt,
        transcript: Transcript,
        read: Read,
        new_id: NewId,
        keep: Keep,
        *,
        masking: Masking = NO_SECRETS_KNOWN,
    ) -> None:
        stored = msgspec.json.decode(attempt.adapter_state, type=_Stored)
        self._adapter: Adapter[Any] = adapter_for(attempt.adapter)
        self._transcript = transcript
        self._read = read
        self._new_id = new_id
        self._keep = keep
        self._masking = masking
        self._state: Any = self._adapter.load(bytes(stored.fold).decode())
        self._stored = attempt.adapter_state
        self._stored_for = (self._state, stored.skipping, stored.inside)
        offsets = {Stream.STDOUT: attempt.stdout_offset, Stream.STDERR: attempt.stderr_offset}
        self._splitters = {
            stream: Splitter(offset, skipping=stream in stored.skipping)
            for stream, offset in offsets.items()
        }
        self._redactors = {
            stream: Redactor(masking.known, inside=stored.inside.get(stream, 0))
            for stream in Stream
        }
        self._uncertain = set(Stream)
        """Streams whose transcript may be longer than the row says."""

    def step(self, stdout_end: int, stderr_end: int) -> Step:
        """Read on towards where the host says its spool ends. EOFError if it does not go there."""
        found = _Found()
        more = False
        for stream, end in ((Stream.STDOUT, stdout_end), (Stream.STDERR, stderr_end)):
            splitter = self._splitters[stream]
            behind = end - splitter.read_to
            if behind <= 0:
                continue
            limit = FOLD_BYTES if stream in self._adapter.folds else STEP_BYTES
            chunk = self._read(stream, splitter.read_to, min(limit, behind))
            if not chunk:
                message = f"{stream} ends at {splitter.read_to}, {behind} bytes are missing"
                raise EOFError(message)
            self._take(stream, splitter.feed(chunk), found)
            more = more or splitter.read_to < end
        return self._told(found, more=more)

    def flush(self) -> Step:
        """Take the last lines that have no line end. Only after everything was read."""
        found = _Found()
        for stream, splitter in self._splitters.items():
            self._take(stream, splitter.finish(), found)
            held = self._redactors[stream].finish()
            if held:
                self._append(stream, held)
                found.moved = True
        return self._told(found, more=False)

    def finish(self, exit_code: int | None, signal: int | None) -> Verdict:
        """Judge the attempt by its output and how it ended. Only after `flush`."""
        stdout, more = self._transcript.tail(Stream.STDOUT, RESULT_TEXT_BYTES)
        text, truncated = tail_text(stdout, RESULT_TEXT_BYTES, cut_before=more)
        stderr, more = self._transcript.tail(Stream.STDERR, STDERR_TAIL_BYTES)
        ended = Exit(
            exit_code=exit_code,
            signal=signal,
            stdout_tail=text,
            tail_truncated=truncated,
            stderr_tail=tail_text(stderr, STDERR_TAIL_BYTES, cut_before=more)[0],
        )
        return self._masking.report(self._adapter.end(self._state, ended))

    def _take(self, stream: Stream, blocks: Sequence[Block], found: _Found) -> None:
        folds, redactor = stream in self._adapter.folds, self._redactors[stream]
        for block in blocks:
            if block.oversize:
                self._append(stream, redactor.piece(block.data, begins=block.begins))
            else:
                self._append(stream, redactor.feed(self._worth_keeping(stream, block.data)))
            found.moved = True
            if folds and not block.oversize:
                self._fold(stream, block, found)
            elif folds and block.begins:
                self._fold_line(Line(stream, b"", oversize=True), found)

    def _worth_keeping(self, stream: Stream, lines: bytes) -> bytes:
        repeats = self._adapter.repeats
        if repeats is None or stream not in self._adapter.folds:
            return lines
        return b"\n".join(line for line in lines.split(b"\n") if not repeats.match(line))

    def _append(self, stream: Stream, data: bytes) -> None:
        if stream in self._uncertain:
            self._transcript.truncate_to(stream, self._transcript.length(stream))
            self._uncertain.remove(stream)
        self._transcript.append(stream, data)

    def _fold(self, stream: Stream, block: Block, found: _Found) -> None:
        mark = self._adapter.mark
        if mark not in block.data:
            return
        for data in lines_of(block):
            if mark in data:
                self._fold_line(Line(stream, data), found)

    def _fold_line(self, line: Line, found: _Found) -> None:
        folded = self._adapter.fold(self._state, line, self._new_id)
        self._state = folded.state
        for report in folded.reports:
            shown = self._masking.report(report)
            found.reports.extend(map(self._masking.report, self._kept(shown)))
        if folded.writes:
            found.writes.extend(folded.writes)

    def _kept(self, report: Said) -> Iterator[Report]:
        """Return the report with what it carries made durable, as far as it is too long for it."""
        if isinstance(report, ArtifactGiven):
            kept = self._keep(report)
            yield ArtifactKept(artifact=kept) if isinstance(kept, Artifact) else kept
        elif isinstance(report, ResultGiven | TurnEnded) and is_over(
            report.result.text, RESULT_TEXT_BYTES
        ):
            text = report.result.text
            given = ArtifactGiven(name="", text=text, kind=ArtifactKind.RESULT)
            kept = self._keep(given)
            yield ArtifactKept(artifact=kept) if isinstance(kept, Artifact) else kept
            short = Result(
                text=cut(text, RESULT_TEXT_BYTES),
                truncated=True,
                data_json=report.result.data_json,
                artifact_id=kept.id if isinstance(kept, Artifact) else "",
                sha256=kept.sha256 if isinstance(kept, Artifact) else "",
            )
            yield with_changes(report, result=short)
        else:
            yield report

    def _told(self, found: _Found, *, more: bool) -> Step:
        return Step(
            stdout_offset=self._splitters[Stream.STDOUT].offset,
            stderr_offset=self._splitters[Stream.STDERR].offset,
            stdout_bytes=self._transcript.length(Stream.STDOUT),
            stderr_bytes=self._transcript.length(Stream.STDERR),
            adapter_state=self._state_text(),
            reports=tuple(found.reports),
            writes=tuple(found.writes),
            more=more,
            moved=found.moved,
        )

    def _state_text(self) -> str:
        """Return the state as text, written anew only if it is another one."""
        state = self._state
        skipping = tuple(s for s, splitter in self._splitters.items() if splitter.skipping)
        inside = {s: redactor.inside for s, redactor in self._redactors.items() if redactor.inside}
        if state is not self._stored_for[0] or (skipping, inside) != self._stored_for[1:]:
            fold = self._masking.strings(self._adapter.dump(state))
            self._stored = _stored_text(skipping, inside, fold)
            self._stored_for = (state, skipping, inside)
        return self._stored


def _stored_text(skipping: Sequence[Stream], inside: Mapping[Stream, int], fold: str) -> str:
    """Return what `_Stored` reads; nothing at all for a state that says nothing."""
    fields: list[str] = []
    if inside:
        fields.append(f'"inside":{msgspec.json.encode(inside).decode()}')
    if skipping:
        fields.append(f'"skipping":{msgspec.json.encode(skipping).decode()}')
    if fold != "{}":
        fields.append(f'"fold":{fold}')
    return f"{{{','.join(fields)}}}"
