# ruff: noqa: INP001 - a script beside the contract, not a package
"""Make all that is generated from the contract: code for each client, and the descriptor set.

Without arguments it is written in place. With `--check` it is made in a temporary folder and every
difference to what is there is named; the exit code is 1 if there is any. A language without its
generators, for want of Node or Go, is left out, and a warning says so. `--only python` makes the
code of one language; that its generators are missing is an error then.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROTO = ROOT / "proto"
PYTHON_BIN = Path(sys.executable).parent
PYTHON_PLUGINS = (PYTHON_BIN / "protoc-gen-mypy", PYTHON_BIN / "protoc-gen-mypy_grpc")
GO_BIN = ROOT / ".venv" / "go"
GO_PLUGINS = (GO_BIN / "protoc-gen-go", GO_BIN / "protoc-gen-go-grpc")
NODE_BIN = ROOT / "clients" / "typescript" / "node_modules" / ".bin"
NODE_PLUGINS = (NODE_BIN / "protoc-gen-es",)
GENERATORS = {"grpcio-tools": "1.76.0", "mypy-protobuf": "5.1.0"}
# The stubs narrow a mutable attribute of their base class.
STUB_HEADER = '# mypy: disable-error-code="mutable-override"\n'
HEADER = '"""Generated from proto/ by proto/generate.py; never edited."""\n'
MODULE = re.compile(r"^(\s*(?:from|import) )crewd\.v1\b|(')crewd\.v1(?=\.\w+_pb2')", re.MULTILINE)
# The messages in which errors travel (google.aip.dev/193).
ERROR_DETAILS = ("google/rpc/error_details.proto", "google/rpc/status.proto")
# Read by grpcurl, buf and every protoc: the contract with its comments, in one file.
DESCRIPTOR_SET = PROTO / "crewd.binpb"

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Output:
    """A folder that holds generated files only, those that match the pattern."""

    folder: Path
    pattern: str
    files: Files


@dataclass(frozen=True, slots=True)
class Language:
    """`run_by`: the program that its plugins are scripts of."""

    make: Callable[[], list[Output]]
    plugins: tuple[Path, ...]
    run_by: str = ""

    def lacks(self) -> str:
        """Name a program that it needs and that is not installed, if there is any."""
        missing = [path.name for path in self.plugins if not path.exists()]
        if self.run_by and shutil.which(self.run_by) is None:
            missing.append(self.run_by)
        return missing[0] if missing else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="report differences, write nothing")
    parser.add_argument("--only", choices=LANGUAGES, help="make the code of one language")
    options = parser.parse_args()
    check: bool = options.check
    for name, wanted in GENERATORS.items():
        if version(name) != wanted:
            parser.error(f"{name} {wanted} makes this code, found {version(name)}")
    outputs = [output for language in wanted_languages(options.only) for output in language.make()]
    descriptors = descriptor_set()
    if check:
        differences = [difference for output in outputs for difference in compare(output)]
        if not DESCRIPTOR_SET.exists() or DESCRIPTOR_SET.read_bytes() != descriptors:
            differences.append(_stale(DESCRIPTOR_SET))
        sys.stderr.writelines(f"{difference}\n" for difference in differences)
        return 1 if differences else 0
    for output in outputs:
        write(output)
    DESCRIPTOR_SET.write_bytes(descriptors)
    return 0


def wanted_languages(only: str | None) -> list[Language]:
    """Give the language that is named, else all those whose generators are installed."""
    lacking = {name: language.lacks() for name, language in LANGUAGES.items()}
    if only is not None:
        if lacking[only]:
            sys.exit(f"error: no code for {only} can be made: {lacking[only]} is not there")
        return [LANGUAGES[only]]
    for name, program in lacking.items():
        if program:
            sys.stderr.write(f"WARNING: {name} is left out: {program} is not there\n")
    return [language for name, language in LANGUAGES.items() if not lacking[name]]


def python() -> list[Output]:
    """Make the daemon's code, and its copy in the client."""
    made = run_protoc(
        SOURCES,
        PYTHON_PLUGINS,
        {"python": "", "grpc_python": "", "mypy": "quiet", "mypy_grpc": "quiet"},
    )
    services = {Path(source).stem for source in SOURCES if source.endswith("_service.proto")}
    wanted = {
        Path(name).name: STUB_HEADER + text if name.endswith(".pyi") else text
        for name, text in made.items()
        if _says_anything(Path(name).name, services)
    }
    daemon = {"__init__.py": HEADER} | wanted
    client = {name: for_client(text) for name, text in daemon.items()}
    return [
        Output(ROOT / "crewd" / "v1", "*.py*", daemon),
        Output(ROOT / "clients" / "python" / "src" / "crewd_client" / "v1", "*.py*", client),
    ]


def typescript() -> list[Output]:
    """Make the messages and service descriptions, and those of the errors' details."""
    made = run_protoc(
        [*SOURCES, *ERROR_DETAILS],
        NODE_PLUGINS,
        {"es": "target=ts,import_extension=js"},
    )
    return _by_folder(ROOT / "clients" / "typescript" / "src", "*_pb.ts", made)


def go() -> list[Output]:
    """Make the messages and the service clients."""
    module = "module=crewd.dev/go"
    made = run_protoc(SOURCES, GO_PLUGINS, {"go": module, "go-grpc": module})
    return _by_folder(ROOT / "clients" / "go", "*.pb.go", made)


def run_protoc(
    sources: Iterable[str], plugins: Iterable[Path], outputs: Mapping[str, str]
) -> dict[str, str]:
    """Give the text of every file that the plugins make, by its path."""
    with tempfile.TemporaryDirectory() as folder:
        _protoc(
            [f"--plugin={path.name}={path}" for path in plugins],
            [f"--{name}_out={options}:{folder}" for name, options in outputs.items()],
            sources,
        )
        made = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_text() for path in made}


def descriptor_set() -> bytes:
    """Give the contract as a `google.protobuf.FileDescriptorSet`, with all it imports."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "set.binpb")
        how = ["--include_imports", "--include_source_info", f"--descriptor_set_out={target}"]
        # With the details of errors, which nothing imports: tools show them as what they are.
        _protoc(how, [], [*SOURCES, *ERROR_DETAILS])
        return target.read_bytes()


def for_client(text: str) -> str:
    """Turn the daemon's module into the client's: module names differ, descriptors do not."""
    return MODULE.sub(r"\1\2crewd_client.v1", text)


def compare(output: Output) -> list[str]:
    """Name each file of the folder that is missing, stale or not generated."""
    found = (path for path in output.folder.glob(output.pattern) if path.is_file())
    present = {path.name: path.read_text() for path in found}
    return [
        _stale(output.folder / name)
        for name in sorted(present.keys() | output.files.keys())
        if present.get(name) != output.files.get(name)
    ]


def write(output: Output) -> None:
    """Make the folder hold exactly these files; those that are right keep their times."""
    output.folder.mkdir(parents=True, exist_ok=True)
    for path in output.folder.glob(output.pattern):
        if path.name not in output.files:
            path.unlink()
    for name, text in output.files.items():
        path = output.folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


SOURCES = sorted(str(path.relative_to(PROTO)) for path in PROTO.glob("crewd/v1/*.proto"))
LANGUAGES = {
    "python": Language(python, PYTHON_PLUGINS),
    "typescript": Language(typescript, NODE_PLUGINS, run_by="node"),
    "go": Language(go, GO_PLUGINS),
}


def _protoc(how: list[str], outputs: list[str], sources: Iterable[str]) -> None:
    rpc = distribution("googleapis-common-protos").locate_file("")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}"]
    command += [f"--proto_path={rpc}", *how, *outputs, *sources]
    # Its arguments are this repository's own paths.
    done = subprocess.run(command, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"error: protoc ended with {done.returncode}")


def _by_folder(root: Path, pattern: str, made: Files) -> list[Output]:
    folders = sorted({Path(name).parent for name in made})
    return [
        Output(
            root / folder,
            pattern,
            {Path(name).name: text for name, text in made.items() if Path(name).parent == folder},
        )
        for folder in folders
    ]


def _says_anything(name: str, services: set[str]) -> bool:
    """Tell whether a file says anything: without a service, the gRPC module is empty."""
    stem, _, grpc = name.partition("_pb2")
    return stem in services or not grpc.startswith("_grpc")


def _stale(path: Path) -> str:
    return f"{path.relative_to(ROOT)}: not as generated, run `make proto`"


if __name__ == "__main__":
    sys.exit(main())
