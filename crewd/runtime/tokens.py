"""Tokens of attempts: what lets a worker speak for its own task, and for nothing else.

A token says which attempt it is for and proves it with a key of the state directory, so none is
stored. Whether the attempt still lives is not the token's to know.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from crewd.runtime.jobs import JobKey

PREFIX: Final = "crewt_"
_SEPARATOR: Final = "_"
"""No proof has it: of the separators in a token the last one counts."""
_PROOF_LENGTH: Final = 40
"""Hexadecimal digits: 160 bits."""


class TaskTokens:
    """Makes and reads the tokens of one state directory."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, job: JobKey) -> str:
        """Return the attempt's token, the same every time."""
        name = str(job).encode()
        proof = hmac.new(self._key, name, hashlib.sha256).hexdigest()[:_PROOF_LENGTH]
        said = urlsafe_b64encode(name).rstrip(b"=").decode()
        return f"{PREFIX}{said}{_SEPARATOR}{proof}"

    def read(self, token: str) -> JobKey | None:
        """Return the attempt the token was issued for, None if it was not issued here."""
        said = token.removeprefix(PREFIX).rpartition(_SEPARATOR)[0]
        try:
            job = JobKey.of(urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode())
        except ValueError:
            return None
        # Made again and compared whole: one attempt has one spelling.
        return job if hmac.compare_digest(token.encode(), self.issue(job).encode()) else None
