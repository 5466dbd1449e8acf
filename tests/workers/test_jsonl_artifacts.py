from __future__ import annotations

import json

import pytest

from crewd.core.reports import ArtifactGiven, Warned
from crewd.core.words import ArtifactKind
from crewd.workers.adapter import Line
from crewd.workers.jsonl import MAX_ARTIFACTS, JsonlAdapter, JsonlState
from crewd.workers.lines import Stream

Said = list[ArtifactGiven | Warned]


def fold(*lines: dict[str, object], state: JsonlState | None = None) -> tuple[JsonlState, Said]:
    adapter = JsonlAdapter()
    state = state or adapter.initial()
    said: Said = []
    for fields in lines:
        line = Line(Stream.STDOUT, json.dumps({"type": "artifact", **fields}).encode())
        folded = adapter.fold(state, line, lambda: "ask_1")
        state = folded.state
        said += [r for r in folded.reports if isinstance(r, ArtifactGiven | Warned)]
    return state, said


def test_a_file_or_a_text_is_handed_in() -> None:
    assert fold(
        {"name": "plot", "path": "out/plot.png", "media_type": "image/png"},
        {"name": "notes.md", "text": "# Notes", "kind": "Report", "description": "what I saw"},
        {"name": "empty", "text": ""},
    )[1] == [
        ArtifactGiven(name="plot", path="out/plot.png", media_type="image/png"),
        ArtifactGiven(
            name="notes.md", text="# Notes", kind=ArtifactKind.REPORT, description="what I saw"
        ),
        ArtifactGiven(name="empty"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "x"},
        {"name": "", "text": "x"},
        {"name": 7, "text": "x"},
        {"name": "a\0b", "text": "x"},
        {"name": "a\x1b[2J", "text": "x"},
        {"name": "é" * 101, "text": "x"},
        {"name": "a"},
        {"name": "a", "path": "a", "text": "x"},
        {"name": "a", "path": ""},
        {"name": "a", "path": ["a"]},
        {"name": "a", "path": "a" * 4097},
        {"name": "a", "text": {"b": 1}},
    ],
)
def test_what_cannot_be_meant_is_warned_about(fields: dict[str, object]) -> None:
    (said,) = fold(fields)[1]
    assert isinstance(said, Warned)
    assert said.code == "artifact_invalid"


@pytest.mark.parametrize("name", ["../a", "a/../b", "..", "/a", "a//b", "a/", "a\\b", "C:\\a"])
def test_a_name_that_could_lead_elsewhere_is_refused_with_the_way_out(name: str) -> None:
    (said,) = fold({"name": name, "text": "x"})[1]
    assert isinstance(said, Warned)
    assert said.message.startswith(f"an artifact was not kept: its name {name!r}: ")


@pytest.mark.parametrize("name", ["out/report.md", "a..b", "...", ".hidden", "x y.md"])
def test_a_name_may_have_folders_and_points(name: str) -> None:
    assert fold({"name": name, "text": "x"})[1] == [ArtifactGiven(name=name, text="x")]


@pytest.mark.parametrize(
    "odd", [{"kind": "transcript"}, {"kind": "prompt"}, {"kind": "song"}, {"media_type": "x\n"}]
)
def test_an_odd_label_does_not_lose_what_it_is_on(odd: dict[str, object]) -> None:
    warned, given = fold({"name": "a", "text": "x", **odd})[1]
    assert isinstance(warned, Warned)
    assert given == ArtifactGiven(name="a", text="x")


def test_one_attempt_hands_in_so_many() -> None:
    almost = JsonlState(artifacts=MAX_ARTIFACTS - 1)
    lines: list[dict[str, object]] = [{"name": "a", "text": "x"}] * 20
    state, said = fold(*lines, state=almost)
    assert [type(each) for each in said] == [ArtifactGiven, *[Warned] * 8]
    assert JsonlAdapter().load(JsonlAdapter().dump(state)) == state


def test_after_the_result_nothing_is_handed_in() -> None:
    assert fold({"name": "a", "text": "x"}, state=JsonlState(handed_in=True))[1] == []
