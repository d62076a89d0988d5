"""Where a server is reached, as people may see it: a URL or a program, without what may be secret."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from remit.redact import mask
from remit.settings.base import Base

HIDDEN: Final = "…"
"""Stands for what is not shown."""
_REFERENCE: Final = re.compile(r"\$\{\w+\}", re.ASCII)
_RUN: Final = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def address(url: str) -> str:
    """The URL without user, password, query and fragment; a part of its path that looks like a token is hidden."""
    if _REFERENCE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return HIDDEN
    path = "/".join(HIDDEN if is_opaque(part) else part for part in parts.path.split("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def is_url(text: str) -> bool:
    """Say whether a text is a URL of HTTP with a host."""
    try:
        return text.startswith(("https://", "http://")) and bool(urlsplit(text).hostname)
    except ValueError:
        return False


def url_or_empty(text: str, _base: Base) -> str:
    """Return the URL that a setting names, or nothing. Raise ValueError, which does not quote it."""
    if text and not is_url(text):
        raise ValueError("it begins with neither https:// nor http:// and a host")
    return text


def program(word: str) -> str:
    """The first word of a command; nothing of a line that was written in its place, or of an assignment's value."""
    first, *rest = word.split() or [""]
    name, assigned, _ = first.partition("=")
    return mask(name) + (f"={HIDDEN}" if assigned else "") + (f" {HIDDEN}" if rest else "")


def is_opaque(word: str) -> bool:
    """Return whether a word looks like a token: a long run of letters and digits, a UUID, or of a known shape."""
    return any(pattern.search(word) for pattern in (_RUN, _UUID)) or mask(word) != word
