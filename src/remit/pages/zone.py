"""The reader's time zone, as their browser told it in a cookie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

COOKIE: Final = "remit-zone"
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}")


def zone_of(headers: Mapping[str, str]) -> tzinfo:
    """The zone that a request names; UTC if it names none that is known here."""
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return _zone(unquote(value[:100]))
    return UTC


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if not _NAME.fullmatch(name):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return UTC
