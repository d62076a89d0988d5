"""A request to register hashes in a log of anchors, as both sides know it: how many, and the text that is signed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

MOST: Final = 800
"""Hashes in a request at most: it is no longer than the 64 KiB that a witness reads."""
_DOMAIN: Final = b"remit-anchors-1\0"


def signed_text(leaves: Sequence[str]) -> bytes:
    """Return what the holder of a key signs to register these hashes, in hexadecimal."""
    return _DOMAIN + msgspec.json.encode(leaves)
