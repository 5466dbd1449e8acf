"""Files and names of artifacts: cases taken from upstream.

`decision` names crewd's own rule where it decides differently. Upstream looks at paths that are to
be written, crewd opens a worker's files to read them: what upstream accepts is there for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.reports import ArtifactGiven
from crewd.store.artifacts import ArtifactFiles
from crewd.store.sources import SourceRefusedError, opened_beneath
from crewd.workers.jsonl_artifacts import artifact

Case = Mapping[str, Any]
CASES: Final[list[Case]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "artifacts.json").read_text()
)
RUN: Final = "run_1"
TEXT: Final = b"kept"
DIGEST: Final = sha256(TEXT).hexdigest()
WORDS: Final = {
    "missing": "is not there",
    "nul": "NUL character",
    "dotdot-segment": "has a `..`",
    "outside": "has a `..`",
    "empty": "is a directory",
    "sibling prefix": "is not in the task's directory",
    "symlink": "is a symbolic link",
    "symlink outside": "is a symbolic link",
    "symlinked ancestor inside base": "a symbolic link; name it without",
}


def contained(given: Case, place: Path) -> Case:
    base, target = _files(place), given["target"]
    if given["mode"] == "read":
        (base / target).parent.mkdir(parents=True, exist_ok=True)
        (base / target).write_text("x")
    if target.startswith("/"):
        target = f"{place}{target}"
    try:
        with opened_beneath(base, target):
            return {"ok": True, "relative": target, "reason": ""}
    except SourceRefusedError as error:
        return {"ok": False, "reason": str(error)}


def _files(place: Path) -> Path:
    """Lay out `/b`, with `/o` and `/b-evil` beside it, and links into each."""
    for folder in ("b/in", "o", "b-evil"):
        (place / folder).mkdir(parents=True)
    for file in ("b/in/f.txt", "o/s.txt", "b-evil/x"):
        (place / file).write_text("x")
    links = {"dangling": "b/nowhere", "inlink": "b/in", "ld": "o", "lf": "o/s.txt"}
    for name, target in links.items():
        (place / "b" / name).symlink_to(place / target)
    return place / "b"


def written(given: Case, _place: Path) -> Case:
    said = artifact({"name": given["relativePath"], "text": "x"})
    return {"ok": [type(each) for each in said] == [ArtifactGiven]}


def read(given: Case, place: Path) -> Case:
    """Lead what is kept away from where it was, then read it."""
    files = ArtifactFiles(place)
    files.keep_bytes(RUN, TEXT)
    run, digest = place / RUN, DIGEST
    match given["recorded_path"]:
        case "file symlink escaping artifacts root":
            (run / DIGEST).rename(place / "other")
            (run / DIGEST).symlink_to(place / "other")
        case "directory symlink escaping artifacts root":
            run.rename(place / "elsewhere")
            run.symlink_to(place / "elsewhere")
        case _:
            (place / "other").write_bytes(TEXT)
            digest = "../other"
    try:
        files.open(RUN, digest).close()
    except OSError:
        return {"content_returned": False, "error_raised": True}
    return {"content_returned": True, "error_raised": False}


AREAS: Final[Mapping[str, Callable[[Case, Path], Case]]] = {
    "path.contained": contained,
    "artifact.write": written,
    "artifact.read": read,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['area']}: {case['case']}")
def test_a_case_comes_out_as_expected(case: Case, tmp_path: Path) -> None:
    found = AREAS[case["area"]](case["input"], tmp_path)
    expected = dict(case["expect"])
    assert WORDS.get(expected.pop("reason", ""), "") in found.get("reason", "")
    assert {key: found.get(key) for key in expected} == expected


def test_every_area_has_cases() -> None:
    assert {case["area"] for case in CASES} == set(AREAS)
