"""What is in the repository holds on every machine."""

from __future__ import annotations

import re
import subprocess

from tests.architecture.sources import ROOT

ONE_MACHINE = re.compile(rb"/(?:work|farm|root)/|\.\./shared")


def test_no_file_names_a_path_of_one_machine_or_another_checkout() -> None:
    listing = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    kept = ["--cached", "--others", "--exclude-standard"]
    names = subprocess.run([*listing, *kept], cwd=ROOT, check=True, capture_output=True).stdout
    files = [ROOT / name for name in names.decode().split("\0") if name]
    assert files
    assert [str(f) for f in files if f.is_file() and ONE_MACHINE.search(f.read_bytes())] == []
