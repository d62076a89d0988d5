"""Bearer tokens, kept as digests: nothing that is in memory for long could be used to connect."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode

import msgspec

from remit.http.access import Access


class Token(msgspec.Struct, frozen=True):
    """A token that a request may bring."""

    digest: bytes
    """SHA-256 of the token's bytes."""
    access: Access
    expires: int | None = None
    """Microseconds since the epoch from which it is refused; None: never."""


def digest_of(token: str) -> bytes:
    """The SHA-256 of a token, which has enough randomness of its own to need no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def token_of(random: bytes) -> str:
    """A token of random bytes: `rmt_`, so that scanners for secrets know it, and base64url."""
    return "rmt_" + urlsafe_b64encode(random).rstrip(b"=").decode("ascii")
