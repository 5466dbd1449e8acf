from __future__ import annotations

import pytest
from hpack import Encoder

from tests.conformance.tap import RequestHeaders

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20
SETTINGS, HEADERS, CONTINUATION = 4, 1, 9


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + (1).to_bytes(4) + payload


def conversation() -> bytes:
    encoder = Encoder()
    blocks = [encoder.encode([(":method", "POST"), (":authority", name)]) for name in "abca"]
    padded = bytes([3]) + bytes(5) + blocks[1] + bytes(3)
    return b"".join(
        [
            PREFACE,
            frame(SETTINGS, 0, b""),
            frame(HEADERS, END_HEADERS, blocks[0]),
            frame(HEADERS, END_HEADERS | PADDED | PRIORITY, padded),
            frame(HEADERS, 0, blocks[2][:2]),
            frame(CONTINUATION, END_HEADERS, blocks[2][2:]),
            frame(HEADERS, END_HEADERS, blocks[3]),
        ]
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_authorities_are_found_however_the_bytes_arrive(size: int) -> None:
    headers, data = RequestHeaders(), conversation()
    parts = [data[begin : begin + size] for begin in range(0, len(data), size)]
    assert [name for part in parts for name in headers.authorities(part)] == ["a", "b", "c", "a"]
