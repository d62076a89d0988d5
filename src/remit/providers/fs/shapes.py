"""The arguments and results: what the fs tools take and give."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from remit.files.edits import Replacement

Path = Annotated[str, Meta(min_length=1, max_length=4_096, description="Below the root, with `/` between folders.")]
Below = Annotated[
    str, Meta(max_length=4_096, description="The folder to start in, below the root; empty for the root.")
]
Sha256 = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
Expected = Annotated[
    Sha256 | None, Meta(description="If given, refuse with FILE_CHANGED unless the file has this digest now.")
]


class ListArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which folder to list."""

    path: Below = ""
    recursive: Annotated[bool, Meta(description="Also list what folders hold.")] = False
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Entries to return at most.")] = 1_000


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder."""

    path: str
    kind: Annotated[
        Literal["file", "folder", "link", "other", "closed", "unnamed"],
        Meta(description="`closed`: a folder that cannot be read; `unnamed`: has a name that is not UTF-8."),
    ]
    bytes: int
    modified: Annotated[int, Meta(description="Microseconds since the Unix epoch.")]


class ListResult(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a folder, by name."""

    items: list[Listed]
    truncated: Annotated[bool, Meta(description="Whether there are more.")]


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which file to read."""

    path: Path


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file."""

    path: str
    text: str
    bytes: int
    sha256: Sha256


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for in files, line by line."""

    query: Annotated[
        str, Meta(min_length=1, max_length=1_000, description="The text to find, or with `regex` a pattern.")
    ]
    path: Below = ""
    regex: Annotated[
        bool, Meta(description="The query is a regular expression without look-around or back-references.")
    ] = False
    ignore_case: bool = False
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Lines to return at most.")] = 100


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A line that matches."""

    path: str
    line: Annotated[int, Meta(description="Counted from 1.")]
    text: Annotated[str, Meta(description="The line, cut to 500 characters.")]


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that match, by path and line."""

    matches: list[Match]
    files: Annotated[int, Meta(description="Files that were searched.")]
    skipped: Annotated[int, Meta(description="Files that are binary, too large, or cannot be read.")]
    truncated: Annotated[bool, Meta(description="Whether the search ended at a limit.")]


class WriteArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file to write."""

    path: Path
    content: Annotated[str, Meta(description="The file's new text, written as UTF-8.")]
    create_folders: Annotated[bool, Meta(description="Make the folders it lies in where they are missing.")] = False
    expect_sha256: Expected = None


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    path: str
    change: Annotated[
        Literal["created", "replaced", "unchanged"],
        Meta(description="`unchanged`: the file already held this content."),
    ]
    bytes: int
    sha256: Sha256


class EditArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a file, made one after the other, all or none."""

    path: Path
    edits: Annotated[list[Replacement], Meta(min_length=1, max_length=100)]
    expect_sha256: Expected = None


class EditResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed."""

    path: str
    diff: Annotated[str, Meta(description="Unified diff.")]
    diff_truncated: bool
    bytes: int
    sha256_before: Sha256
    sha256: Sha256
