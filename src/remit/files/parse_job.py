"""The job of a process that parses a document, and its answers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec


class ParseJob(msgspec.Struct, frozen=True, kw_only=True, tag="document"):
    """A document to parse."""

    format: str
    data: bytes
    pages: int
    """Pages to read at most."""
    chars: int
    """Characters to return at most."""


class Parsed(msgspec.Struct, frozen=True, kw_only=True, tag="parsed"):
    """The text of a document."""

    text: str
    title: str = ""
    pages: tuple[int, ...] = ()
    """Where each page begins in `text`; the last ones may be missing."""
    page_count: int = 0
    truncated: bool = False
    note: str = ""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Why a document has no text to read."""

    code: str
    """The name of a `Code`."""
    reason: str


def joined(pages_read: Iterable[str], job: ParseJob, *, title: str, page_count: int) -> Parsed:
    """The texts of pages as one, within the limits of a job: what is beyond them is not read."""
    texts: list[str] = []
    starts, position = [], 0
    for text in islice(pages_read, job.pages):
        texts.append(text)
        starts.append(position)
        position += len(text) + 2
        if position >= job.chars:
            break
    whole = "\n\n".join(texts)
    text = whole[: job.chars]
    pages = tuple(start for start in starts if start <= len(text))
    return Parsed(
        text=text,
        title=title,
        pages=pages,
        page_count=page_count,
        truncated=len(pages) < page_count or len(text) < len(whole),
    )
