"""What folder.search and folder.read take and give."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1, max_length=4_096)]
Position = Annotated[int, Meta(ge=0)]


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    folder: Annotated[Text, Meta(description="The folder to search; everything below it is looked at.")]
    query: Annotated[Text, Meta(description="A question or words; passages that hold any of them are ranked.")]
    limit: Annotated[int, Meta(ge=1, le=100, description="Passages to return at most.")] = 10


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that matches."""

    path: Annotated[str, Meta(description="The file, below the folder.")]
    title: str
    heading: Annotated[str, Meta(description="The section or definition the passage is part of; may be empty.")]
    start: Annotated[int, Meta(description="First character of the passage in the file's text.")]
    end: Annotated[int, Meta(description="The character after its last.")]
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    score: Annotated[float, Meta(description="Comparable within one answer only.")]
    snippet: str


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were not read, by reason."""

    binary: int
    too_large: int
    unreadable: int


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Passages, best first, and what was searched."""

    folder: Annotated[str, Meta(description="The real path of the folder.")]
    items: list[Item]
    files: Annotated[int, Meta(description="Files searched.")]
    passages: Annotated[int, Meta(description="Passages they were cut into.")]
    skipped: Skipped
    truncated: Annotated[bool, Meta(description="Whether the folder holds more files than a search looks at.")]


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which passage to read."""

    folder: Annotated[Text, Meta(description="The folder that was searched.")]
    path: Annotated[
        Text, Meta(description="The file, below the folder.", extra_json_schema={"x-remit-below": "folder"})
    ]
    start: Annotated[Position, Meta(description="First character.")] = 0
    end: Annotated[Position | None, Meta(description="The character after the last; without it, to the end.")] = None
    sha256: Annotated[
        str | None, Meta(description="If given, refuse with FILE_CHANGED unless the file still has it.")
    ] = None


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a file's text."""

    path: str
    text: str
    start: int
    end: Annotated[int, Meta(description="The character after the last that was read.")]
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    chars: Annotated[int, Meta(description="Characters of the file's whole text.")]
