"""The recipes of `proto/README.md` do what it says, word for word, where their tool is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.packaging.readme import blocks
from tests.support.daemon import Daemon

README = (ROOT / "proto" / "README.md").read_text()
TOOLS = f"{Path(sys.executable).parent}:{ROOT / '.venv' / 'go'}:{os.environ['PATH']}"
SOURCES = sorted((ROOT / "proto").rglob("*.proto"))
GENERATE = "Code for any language"
RUN = "goal: try it\ntasks:\n- {id: a, command: [echo, done]}\n"

TALKS = {
    "crew call": ["RunService/WatchRuns", "on_needs_attention", '"title":"try it"', "run_finished"],
    "grpcurl": ["crewd.v1.RunService\n", "message RunSpec", '"title": "try it"', "runFinished"],
    "buf curl": ['"title": "try it"', '"runFinished"', '"caughtUp": true'],
    "Health": ['"SERVING"'],
}
"""What is to be seen of the commands under each heading."""


def part(heading: str) -> str:
    """Return what is under a heading, up to the next."""
    found = re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


def texts(heading: str, language: str) -> list[str]:
    return [each.text for each in blocks(part(heading)) if each.language == language]


def scripts(heading: str) -> list[str]:
    """Return what a person is to type there, a script for each block."""
    return [re.sub(r"^\$ ", "", block, flags=re.MULTILINE) for block in texts(heading, "console")]


def commands(heading: str) -> str:
    return "".join(scripts(heading))


def tools(script: str) -> set[str]:
    """Name the programs that the script needs and that not everyone has."""
    return set(re.findall(r"(?:^|\| )(buf|grpcurl|protoc)\b", script, re.MULTILINE))


def missing(script: str) -> str:
    absent = sorted(tool for tool in tools(script) if shutil.which(tool, path=TOOLS) is None)
    return ", ".join(absent)


def typed(script: str, place: Path, env: dict[str, str]) -> str:
    """Run the script beside the contract, with what is in `bin`; return what it prints."""
    (place / "proto").symlink_to(ROOT / "proto")
    (place / "run.yaml").write_text(RUN)
    done = subprocess.run(
        ["sh", "-eu"],
        cwd=place,
        env={**env, "PATH": f"{place / 'bin'}:{TOOLS}"},
        input=script,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("heading", TALKS)
async def test_a_tool_talks_to_the_daemon(daemon: Daemon, heading: str) -> None:
    script = commands(heading)
    if missing(script):
        pytest.skip(f"{missing(script)} is not installed")
    said = typed(commands("Talk to a daemon") + script, daemon.root, daemon.env)
    assert [text for text in TALKS[heading] if text not in said] == []


async def test_buf_curl_asks_the_daemon_for_its_contract(daemon: Daemon) -> None:
    (option,) = re.findall(r"With `(--reflect .*?)`", part("buf curl"))
    script = commands("buf curl").replace("--schema proto/crewd.binpb", option)
    said = typed(commands("Talk to a daemon") + script, daemon.root, daemon.env)
    assert '"caughtUp": true' in said


@pytest.mark.parametrize("heading", [heading for heading in TALKS if heading != "crew call"])
def test_no_other_user_sees_the_token(tmp_path: Path, heading: str) -> None:
    programs = {"crewd": 'echo "the-$1"', "crew": "", "grpcurl": "", "buf": ""}
    (tmp_path / "bin").mkdir()
    for name, does in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> arguments\n{does}\n')
        program.chmod(0o755)
    typed(commands("Talk to a daemon") + commands(heading), tmp_path, {})
    arguments = (tmp_path / "arguments").read_text()
    assert "crewd token\n" in arguments
    assert any(f"\n{tool} " in arguments for tool in ("grpcurl", "buf"))
    assert "the-token" not in arguments


async def test_health_takes_no_token(daemon: Daemon) -> None:
    grpc = "--protocol grpc --http2-prior-knowledge --unix-socket $socket"
    reflect = '--reflect --reflect-header "authorization: Bearer $token"'
    call = f"buf curl {grpc} {reflect} http://localhost/grpc.health.v1.Health/Check\n"
    assert '"SERVING"' in typed(commands("Talk to a daemon") + call, daemon.root, daemon.env)


def test_protoc_makes_code_from_the_descriptor_set(tmp_path: Path) -> None:
    script = next(each for each in scripts(GENERATE) if "protoc" in each)
    if shutil.which("protoc", path=TOOLS) is None:
        # The one that is a Python package makes Python only.
        script = script.replace("protoc ", f"{sys.executable} -m grpc_tools.protoc ")
        script = script.replace("--java_out", "--pyi_out")
    typed(script, tmp_path, {})
    assert len(made(tmp_path / "out")) == len(SOURCES)


@pytest.mark.parametrize("plugin", ["protoc-gen-go", "protoc-gen-mypy"])
def test_buf_makes_code_from_the_descriptor_set(tmp_path: Path, plugin: str) -> None:
    if shutil.which(plugin, path=TOOLS) is None:
        pytest.skip(f"{plugin} is not installed")
    (template,) = texts(GENERATE, "yaml")
    template = template.replace("protoc-gen-go", plugin)
    if plugin != "protoc-gen-go":
        template = template.replace("    opt: paths=source_relative\n", "")
    (tmp_path / "buf.gen.yaml").write_text(template)
    typed(next(each for each in scripts(GENERATE) if "buf" in each), tmp_path, {})
    assert {path.parent for path in made(tmp_path / "out")} == {tmp_path / "out" / "crewd" / "v1"}
    assert len(made(tmp_path / "out")) == len(SOURCES)


def made(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
