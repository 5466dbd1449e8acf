from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from crewd.core.effects import KeepText
from crewd.core.errors import CrewdError, Reason
from crewd.core.model import Artifact, Attempt
from crewd.core.redaction.known import NOTHING_KNOWN, KnownSecrets
from crewd.core.reports import ArtifactGiven, Warned
from crewd.core.spec import OutputSpec, TaskSpec
from crewd.core.stimuli import Stimulus, TextKept, TextWaits
from crewd.core.words import ArtifactKind
from crewd.runtime import keeping
from crewd.runtime.housekeeping import clear_left
from crewd.runtime.keeping import Keeper, TextKeeper
from crewd.runtime.pump import PumpTools
from crewd.store.artifacts import ArtifactFiles, Kept
from crewd.workers.host_link import HostLink
from tests.store.samples import Store, a_run

RUN = "run_a"
ATTEMPT = Attempt(run_id=RUN, task_id="t0", number=2)
EFFECT = KeepText(
    task_id="t0",
    attempt=2,
    name="plan.md",
    kind=ArtifactKind.RESULT,
    media_type="text/markdown",
    text="the plan",
    truncated=True,
)


class SmallDisk(ArtifactFiles):
    """Has no room for the first texts."""

    def __init__(self, root: Path, full: list[str]) -> None:
        super().__init__(root, reserve=0)
        self.full = full

    def keep_text(self, run_id: str, text: str, known: KnownSecrets = NOTHING_KNOWN) -> Kept:
        if self.full:
            raise OSError(errno.ENOSPC, self.full.pop(0))
        return super().keep_text(run_id, text, known)


@pytest.fixture
def files(tmp_path: Path) -> ArtifactFiles:
    return ArtifactFiles(tmp_path / "artifacts", reserve=0)


@pytest.fixture
async def executor() -> AsyncIterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def keeper(files: ArtifactFiles, cwd: Path, result_name: str = "") -> Keeper:
    spec = TaskSpec(id="t0", cwd=str(cwd), output=OutputSpec(name=result_name))
    return Keeper(files, ATTEMPT, spec)


def row(given: Artifact | Warned) -> Artifact:
    assert isinstance(given, Artifact)
    return given


def test_a_file_of_the_task_becomes_a_row(files: ArtifactFiles, tmp_path: Path) -> None:
    (tmp_path / "plot.png").write_bytes(b"\x89\0")
    given = ArtifactGiven(
        name="plot",
        path="plot.png",
        kind=ArtifactKind.REPORT,
        media_type="image/png",
        description="of it all",
    )
    kept = row(keeper(files, tmp_path)(given))
    assert kept == Artifact(
        id=kept.id,
        run_id=RUN,
        task_id="t0",
        attempt=2,
        name="plot",
        kind=ArtifactKind.REPORT,
        media_type="image/png",
        size_bytes=2,
        sha256=sha256(b"\x89\0").hexdigest(),
        source_path="plot.png",
        description="of it all",
    )
    assert kept.id.startswith("art_")
    assert row(keeper(files, tmp_path)(given)).id != kept.id


def test_what_has_no_media_type_gets_the_one_it_has(files: ArtifactFiles, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0")
    (tmp_path / "b").write_text("text")
    keep = keeper(files, tmp_path)
    types = [row(keep(ArtifactGiven(name=name, path=name))).media_type for name in ("a", "b")]
    assert types == ["application/octet-stream", "text/plain; charset=utf-8"]
    assert row(keep(ArtifactGiven(name="c", text="c"))).media_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize(("declared", "name"), [("", "result.txt"), ("plan.md", "plan.md")])
def test_a_result_is_called_what_the_task_calls_it(
    files: ArtifactFiles, tmp_path: Path, declared: str, name: str
) -> None:
    given = ArtifactGiven(name="", text="long", kind=ArtifactKind.RESULT)
    assert row(keeper(files, tmp_path, declared)(given)).name == name


def test_a_refusal_names_the_file_and_the_way_out(files: ArtifactFiles, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    said = keeper(files, tmp_path)(ArtifactGiven(name="mine", path="link"))
    assert said == Warned(
        "artifact_refused",
        "artifact mine is not kept: link is a symbolic link; name the file it leads to, or copy it",
    )


def test_a_full_disk_is_no_refusal(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "artifacts", reserve=1 << 60)
    with pytest.raises(OSError, match="No space left"):
        keeper(files, tmp_path)(ArtifactGiven(name="a", text="a"))


async def test_a_text_is_kept_and_told(files: ArtifactFiles, executor: ThreadPoolExecutor) -> None:
    told: list[Stimulus] = []

    async def deliver(run_id: str, stimulus: Stimulus) -> None:
        assert files.size_of(run_id) == len("the plan")
        told.append(stimulus)

    for _ in range(2):
        await TextKeeper(files, executor, deliver).keep(RUN, [EFFECT])
    first, again = told
    assert first == again
    assert isinstance(first, TextKept)
    kept = first.artifact
    assert (kept.name, kept.kind, kept.media_type) == ("plan.md", "result", "text/markdown")
    assert (kept.task_id, kept.attempt, kept.truncated) == ("t0", 2, True)
    assert (kept.size_bytes, kept.sha256) == (8, sha256(b"the plan").hexdigest())


async def test_a_full_disk_is_told_once_and_tried_again(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "RETRY_SECONDS", 0)
    told: list[Stimulus] = []

    async def deliver(_run_id: str, stimulus: Stimulus) -> None:
        told.append(stimulus)

    files = SmallDisk(tmp_path / "artifacts", ["full", "full", "full"])
    await TextKeeper(files, executor, deliver).keep(RUN, [EFFECT])
    waits, kept = told
    message = "artifact plan.md waits to be kept: full; free some space"
    assert waits == TextWaits(task_id="t0", attempt=2, message=message)
    assert isinstance(kept, TextKept)


@pytest.mark.parametrize(
    ("reason", "left"), [(Reason.RUN_NOT_FOUND, 0), (Reason.INTERNAL, len("the plan"))]
)
async def test_a_text_goes_with_its_run(
    files: ArtifactFiles, executor: ThreadPoolExecutor, reason: Reason, left: int
) -> None:
    async def deliver(_run_id: str, _stimulus: Stimulus) -> None:
        raise CrewdError(reason, "no")

    await TextKeeper(files, executor, deliver).keep(RUN, [EFFECT])
    assert files.size_of(RUN) == left


async def test_a_start_clears_what_belongs_to_no_run(
    files: ArtifactFiles, executor: ThreadPoolExecutor, tmp_path: Path
) -> None:
    files.keep_text(RUN, "mine")
    (files.folder(RUN) / ".draft-gone-1").write_text("half")
    files.keep_text("run_deleted", "left")
    (tmp_path / "transcripts" / "run_deleted").mkdir(parents=True)
    link = HostLink(state_dir=tmp_path, daemon_epoch="e", on_news=lambda _news: None, spawn=False)
    tools = PumpTools(link, tmp_path / "transcripts", files, executor)
    async with Store(tmp_path / "crewd.db") as store:
        await store.add(a_run(RUN))
        await clear_left(tools, store.reads)
    assert files.runs() == [RUN]
    assert files.size_of(RUN) == len("mine")
    assert list((tmp_path / "transcripts").iterdir()) == []
