from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewd.workers.env_file import EnvFileError, parse_env, read_env_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "env"
    path.touch(0o600)
    return path


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A = b c ", "b c"),
        ("  export A=b", "b"),
        ("export\tA=b", "b"),
        ("A=", ""),
        ("A=b=c", "b=c"),
        ("A=b # why", "b"),
        ("A=b#c", "b#c"),
        ("A=# why", ""),
        ("A=$HOME", "$HOME"),
        ('A=b"c', 'b"c'),
        ("A='b  # \\n $c' # why", "b  # \\n $c"),
        ('A="b  # c"', "b  # c"),
        (r'A="b\n\t\"\\\$\x"', 'b\n\t"\\$\\x'),
        ('A="b\\\nc"', "bc"),
        ('A="b\nc"', "b\nc"),
        ("A='-----BEGIN\nkey\n-----END'", "-----BEGIN\nkey\n-----END"),
    ],
)
def test_a_value_is_read_as_it_is_written_in_such_files(line: str, value: str) -> None:
    assert parse_env(f"# first\n\n{line}\nNEXT=1\n") == {"A": value, "NEXT": "1"}


def test_line_ends_of_another_system_and_a_missing_last_one_are_no_part_of_a_value() -> None:
    assert parse_env("A=b\r\nC='d'\r\nE=f") == {"A": "b", "C": "d", "E": "f"}


def test_of_two_lines_with_one_name_the_later_counts() -> None:
    assert parse_env("A=old\nA=new\n") == {"A": "new"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("A", "line 3 is no NAME=value"),
        ("export A", "line 3 is no NAME=value"),
        ("2A=b", "line 3 is no NAME=value"),
        ("source other", "line 3 is no NAME=value"),
        ("A='b", "line 3 opens a ' that is never closed"),
        ('A="b\\"', 'line 3 opens a " that is never closed'),
        ("A='b'c", "line 3 goes on after the closing '"),
        ('A="b\nc" d', 'line 4 goes on after the closing "'),
        ("A=b\0c", "line 3 has a NUL character"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_line(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        parse_env(f"# first\nSECRET=x\n{line}\n")


def test_a_refusal_never_shows_a_value(file: Path) -> None:
    file.write_text("hunter2\n")
    with pytest.raises(EnvFileError) as refused:
        read_env_file(file)
    assert str(refused.value) == f"{file} line 1 is no NAME=value"


def test_a_file_that_is_not_there_names_nothing(tmp_path: Path) -> None:
    assert read_env_file(tmp_path / "none" / "env") == {}


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o666])
def test_a_file_that_others_can_open_is_refused_with_the_way_out(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(EnvFileError, match="can be read by others; run: chmod 600") as refused:
        read_env_file(file)
    assert refused.value.command == f"chmod 600 {file}"


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(EnvFileError, match="is no plain file"):
            read_env_file(path)


def test_a_huge_file_and_one_in_another_encoding_are_refused(file: Path) -> None:
    file.write_bytes(b"A=\xff\n")
    with pytest.raises(EnvFileError, match="is not UTF-8"):
        read_env_file(file)
    file.write_text("A=" + "x" * (1 << 20))
    with pytest.raises(EnvFileError, match="the most is 1048575"):
        read_env_file(file)


def test_a_byte_order_mark_is_no_part_of_the_first_name(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfA=b\n")
    assert read_env_file(file) == {"A": "b"}


@given(st.text(st.characters(exclude_characters="\0\r", codec="utf-8")))
def test_every_value_can_be_written_in_double_quotes(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_env(f'A="{escaped}"') == {"A": value}


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(ValueError):
        parse_env(text)
