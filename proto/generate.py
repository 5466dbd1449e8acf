# ruff: noqa: INP001 - a script beside the contract, not a package
"""Make the Python code of the contract: `crewd/v1` and its copy in the client.

Without arguments the code is written in place. With `--check` it is made in a temporary folder and
every difference to what is there is named; the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROTO = ROOT / "proto"
DAEMON = ROOT / "crewd" / "v1"
CLIENT = ROOT / "clients" / "python" / "src" / "crewd_client" / "v1"
GENERATORS = {"grpcio-tools": "1.76.0", "mypy-protobuf": "5.1.0"}
PLUGINS = ("protoc-gen-mypy", "protoc-gen-mypy_grpc")
# The stubs narrow a mutable attribute of their base class.
STUB_HEADER = '# mypy: disable-error-code="mutable-override"\n'
HEADER = '"""Generated from proto/ by proto/generate.py; never edited."""\n'
MODULE = re.compile(r"^(\s*(?:from|import) )crewd\.v1\b|(')crewd\.v1(?=\.\w+_pb2')", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="report differences, write nothing")
    check: bool = parser.parse_args().check
    for name, wanted in GENERATORS.items():
        if version(name) != wanted:
            parser.error(f"{name} {wanted} makes this code, found {version(name)}")
    generated = generate()
    targets = {DAEMON: generated, CLIENT: {n: for_client(t) for n, t in generated.items()}}
    if check:
        differences = [d for folder, files in targets.items() for d in compare(folder, files)]
        sys.stderr.writelines(f"{difference}\n" for difference in differences)
        return 1 if differences else 0
    for folder, files in targets.items():
        write(folder, files)
    return 0


def generate() -> dict[str, str]:
    """Give the text of every generated file by its name."""
    sources = sorted(PROTO.glob("crewd/v1/*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}"]
        command += [f"--plugin={name}={Path(sys.executable).parent / name}" for name in PLUGINS]
        outputs = ("python", "grpc_python", "mypy", "mypy_grpc")
        command += [f"--{output}_out={'quiet:' * ('mypy' in output)}{folder}" for output in outputs]
        # Its arguments are this repository's own paths.
        subprocess.run([*command, *map(str, sources)], check=True)  # noqa: S603
        made = {path.name: path.read_text() for path in Path(folder, "crewd", "v1").iterdir()}
    services = {source.stem for source in sources if source.stem.endswith("_service")}
    wanted = {name: text for name, text in made.items() if _wanted(name, services)}
    return {"__init__.py": HEADER} | {
        name: STUB_HEADER + text if name.endswith(".pyi") else text for name, text in wanted.items()
    }


def for_client(text: str) -> str:
    """Turn the daemon's module into the client's: module names differ, descriptors do not."""
    return MODULE.sub(r"\1\2crewd_client.v1", text)


def compare(folder: Path, files: dict[str, str]) -> list[str]:
    """Name each file of the folder that is missing, stale or not generated."""
    present = {path.name: path.read_text() for path in folder.glob("*.py*") if path.is_file()}
    return [
        f"{(folder / name).relative_to(ROOT)}: not as generated, run `make proto`"
        for name in sorted(present.keys() | files.keys())
        if present.get(name) != files.get(name)
    ]


def write(folder: Path, files: dict[str, str]) -> None:
    """Make the folder hold exactly these files; those that are right keep their times."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.py*"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _wanted(name: str, services: set[str]) -> bool:
    """Tell whether a file says anything: without a service, the gRPC module is empty."""
    stem, _, grpc = name.partition("_pb2")
    return stem in services or not grpc.startswith("_grpc")


if __name__ == "__main__":
    sys.exit(main())
