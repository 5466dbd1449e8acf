"""Pages of a list: bounded by items and by bytes, gone on with by an opaque token."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol, TypeVar

import msgspec
from google.protobuf.message import Message

from crewd.core.errors import CrewdError, Reason
from crewd.rpc.errors import invalid
from crewd.rpc.wire import MIB
from crewd.store import Cursor, Listed, Page

DEFAULT_SIZE: Final = 100
LARGEST_SIZE: Final = 1000
RESPONSE_BYTES: Final = MIB - 1024
"""What the items of a response may have in all; a single larger one goes alone."""
_READ_AT_ONCE: Final = 100
_DIGEST_CHARACTERS: Final = 16

T = TypeVar("T")


class Paged(Protocol):
    """A request for a page."""

    @property
    def page_size(self) -> int: ...
    @property
    def page_token(self) -> str: ...


class _Token(msgspec.Struct, array_like=True):
    request: str
    cursor: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins and how many items it may have."""

    size: int
    cursor: Cursor | None
    fingerprint: str

    def position(self, first: int) -> int:
        """Return the number that the page begins after, when numbers are what it goes by."""
        if self.cursor is None:
            return first
        match self.cursor:
            case (int(position),):
                return position
            case _:
                raise _invalid_token("is not one of this list")

    def token(self, cursor: Cursor | None) -> str:
        """Return the token of the next page; empty when this is the last one."""
        if cursor is None:
            return ""
        encoded = msgspec.json.encode(_Token(self.fingerprint, cursor))
        return urlsafe_b64encode(encoded).decode()


def place_of(request: Message, paged: Paged, *, ignoring: tuple[str, ...] = ()) -> Place:
    """Read size and token. A token counts only with the request that it was given for."""
    if paged.page_size < 0:
        raise invalid("page_size", "is negative; 0 means the default")
    size = min(paged.page_size or DEFAULT_SIZE, LARGEST_SIZE)
    body = type(request)()
    body.CopyFrom(request)
    for field in ("page_token", *ignoring):
        body.ClearField(field)
    name = body.DESCRIPTOR.name.encode()
    digest = sha256(name + body.SerializeToString(deterministic=True)).hexdigest()
    fingerprint = digest[:_DIGEST_CHARACTERS]
    return Place(size, _cursor(paged.page_token, fingerprint), fingerprint)


def _cursor(token: str, fingerprint: str) -> Cursor | None:
    if not token:
        return None
    try:
        decoded = msgspec.json.decode(urlsafe_b64decode(token.encode()), type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise _invalid_token("is not one of this daemon's") from error
    if decoded.request != fingerprint:
        raise _invalid_token("was given for another request")
    return decoded.cursor


def _invalid_token(what: str) -> CrewdError:
    return CrewdError(Reason.PAGE_TOKEN_INVALID, f"the page token {what}; start at the first page")


@dataclass(frozen=True, slots=True)
class Gathered:
    """The items of a page, encoded."""

    items: list[bytes]
    next: Cursor | None
    as_of_sequence: int


async def gather(
    place: Place,
    fetch: Callable[[Page], Awaitable[Listed[T]]],
    encode: Callable[[T], bytes],
    *,
    at_once: int = _READ_AT_ONCE,
) -> Gathered:
    """Fill a page. It ends early rather than become larger than a response may be."""
    items: list[bytes] = []
    room = RESPONSE_BYTES
    after, as_of = place.cursor, 0
    while len(items) < place.size:
        listed = await fetch(Page(limit=min(place.size - len(items), at_once), after=after))
        as_of = as_of or listed.as_of_sequence
        encoded = [encode(row) for row in listed.rows]
        fitting = _fitting(encoded, room, at_least=0 if items else 1)
        if fitting < len(encoded):
            if fitting:
                listed = await fetch(Page(limit=fitting, after=after))
                items += [encode(row) for row in listed.rows]
                after = listed.next
            break
        items += encoded
        room -= sum(map(len, encoded))
        after = listed.next
        if after is None:
            break
    return Gathered(items, after, as_of)


def _fitting(encoded: list[bytes], room: int, *, at_least: int) -> int:
    count = 0
    for data in encoded:
        room -= len(data)
        if room < 0:
            break
        count += 1
    return max(count, min(at_least, len(encoded)))
