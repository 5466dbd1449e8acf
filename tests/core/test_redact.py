"""Secrets in text, of every kind we know, and what only looks like one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from crewd.core.redaction.keys import is_secret_key
from crewd.core.redaction.redactor import redact, redact_arguments

CASES: Final[list[Mapping[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors" / "redaction.json").read_text()
)
A = "a" * 40


def of_area(*areas: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case["area"] in areas]
    return pytest.mark.parametrize("case", found, ids=[case["case"] for case in found])


def text_of(given: str | Mapping[str, Any]) -> str:
    """Put a long input together; its secrets are written so that no scanner takes them for real."""
    if isinstance(given, str):
        return given.replace("¦", "")
    if "content" in given:
        return text_of(given["content"])
    return "".join(p if isinstance(p, str) else p[0] * p[1] for p in given["repeat"])


@of_area("redaction.text", "redaction.artifact")
def test_text_is_masked_as_the_vectors_say(case: Mapping[str, Any]) -> None:
    given = text_of(case["input"])
    expected = case["expect"] if isinstance(case["expect"], str) else given
    assert redact(given) == expected
    assert redact(expected) == expected


@of_area("redaction.key")
def test_keys_are_secret_as_the_vectors_say(case: Mapping[str, Any]) -> None:
    assert is_secret_key(case["input"]) is case["expect"]


@of_area("redaction.structured", "event.redact")
def test_json_is_masked_as_the_vectors_say(case: Mapping[str, Any]) -> None:
    for indent in (None, 2):
        assert json.loads(redact(json.dumps(case["input"], indent=indent))) == case["expect"]


@pytest.mark.timeout(60)
@of_area("redaction.time")
def test_what_took_upstream_minutes_ends(case: Mapping[str, Any]) -> None:
    text = text_of(case["input"])

    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\nx", "***\nx"),
        ("-----BEGIN PRIVATE KEY-----\nMIIBVAIBADANBg\n\nnext line", "***\nnext line"),
        ("a -----BEGIN OPENSSH PRIVATE KEY-----\\nb3Bl\\n", "a ***"),
        (
            '{"k":"-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----\\n"}',
            '{"k":"***\\n"}',
        ),
        (f"use sk-{A} now", "use *** now"),
        ('password="two words" x', 'password="***" x'),
        ("password='it\\'s' x", "password='***' x"),
        ('x {"api_key":"abc"} y', 'x {"api_key":"***"} y'),
        ("tool --api-key value --other 1", "tool --api-key *** --other 1"),
        ("tool --api-key --other 1", "tool --api-key --other 1"),
        ("curl -u user:pass https://x", "curl -u user:*** https://x"),
        ("curl -sSu 'user:pa ss' https://x", "curl -sSu 'user:***' https://x"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("git clone https://me:hunter2@host/x", "git clone https://me:***@host/x"),
        ("redis://:p@ss@host:6379/0", "redis://:***@host:6379/0"),
        (f"npm_{A} rk_live_{A}", "*** ***"),
        ("Set-Cookie: a=b; Path=/\r\nX: y", "Set-Cookie: ***\r\nX: y"),
        ("passphrase=a pwd: b auth=c", "passphrase=*** pwd: *** auth=***"),
        ("API key: abcdef", "API key: ***"),
        ("export DB_PASS=hunter2", "export DB_PASS=***"),
        ('password: str = "hunter2"', 'password: str = "***"'),
        ('password = Field(default="hunter2")', 'password = Field(default="***")'),
        ('os.environ["MY_TOKEN"] = "abc"', 'os.environ["MY_TOKEN"] = "***"'),
        ('key = """abc"""\nSECRET = """abc"""', 'key = """abc"""\nSECRET = """***"""'),
        ("token: Bearer abcdefgh12345", "token: Bearer ***"),
        ('Authorization: Digest username="M", response="66"', "Authorization: ***"),
        ('msg="token=abc" user="bob"', 'msg="token=***" user="bob"'),
        ("crewt_cnVuX2EvdC8x_" + "0123456789" * 4, "***"),
        (f"https://x/?q=%20ghp_{A}&z", "https://x/?q=%20***&z"),
    ],
)
def test_a_secret_is_masked_wherever_it_stands(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 tokens=5 tokenCount: 3 monkey=1 keyboard=us",
        "primary_key=a sort_key=b public_key=c cache_key=d secretary=joe author: me",
        "apiVersion: v1\napiUrl=http://x\ntoken_type=x\npassword_file=/run/x",
        "tests/test_auth.py:12: AssertionError\nsecret.rs:4:5: warning",
        "PWD=/home/me OLDPWD=/tmp",
        "auth::Token and std::key::Pair",
        '{"usage":{"input_tokens":5},"next_page_token":"abc","key":"value","token":null}',
        '{"text":"what is a token:","x":1}',
        "password: null, token=None, secret = false",
        "http://localhost:8080/a:b@c ssh://git@host/x",
        "task-with-a-very-long-name-indeed disk-usage-of-the-machine-today",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) is text or redact(text) == text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("tool", "--api-key", "v", "x"), ("tool", "--api-key", "***", "x")),
        (("curl", "-u", "me:hunter2"), ("curl", "-u", "***")),
        (("sh", "-c", "a\npassword=b"), ("sh", "-c", "a\npassword=***")),
        (("echo", "-u", "me:x"), ("echo", "-u", "me:x")),
    ],
)
def test_a_programs_arguments_are_masked(
    arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert redact_arguments(arguments) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            r'{"text":"{\"api_key\":\"a\",\"t\":\"b\\nAuthorization: Basic c\\nd\"}"}',
            r'{"text":"{\"api_key\":\"***\",\"t\":\"b\\nAuthorization: ***\\nd\"}"}',
        ),
        ('{"password":1,"credentials":{"a":[1,2]}}', '{"password":"***","credentials":"***"}'),
        ('  "token": "a b",', '  "token": "***",'),
        (r'{"t":"caf\u00e9 password=x"}', r'{"t":"caf\u00e9 password=***"}'),
        ('{"t":"café password=x"}', '{"t":"café password=***"}'),
        ('["curl","-u","me:x"]', '["curl","-u","***"]'),
    ],
)
def test_json_stays_json(line: str, expected: str) -> None:
    assert redact(line) == expected
    assert redact(expected) == expected
