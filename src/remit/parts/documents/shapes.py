"""The arguments and results of the document tools."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from remit.files.edits import Replacement

Path = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="Below the open folder, with `/` between folders.")
]
Sha256 = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
Format = Literal["pdf", "docx", "pptx", "xlsx", "epub", "ipynb", "html", "markdown", "csv", "text"]


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which document to read, or which part of it."""

    path: Path
    pages: Annotated[
        str,
        Meta(
            pattern=r"^([1-9][0-9]{0,6}(-([1-9][0-9]{0,6})?)?)?$",
            description="Pages, slides, sheets, chapters or cells, such as `3`, `3-7` or `3-`; all if empty.",
        ),
    ] = ""
    start: Annotated[int, Meta(ge=0, description="First character, counted in the whole text.")] = 0
    end: Annotated[int | None, Meta(description="The character after the last.")] = None
    max_chars: Annotated[int, Meta(ge=1, le=1_000_000, description="Characters to return at most.")] = 100_000
    source: Annotated[bool, Meta(description="Return an HTML page or a notebook as the file has it.")] = False
    sha256: Annotated[Sha256 | None, Meta(description="If given, refuse with FILE_CHANGED if it differs.")] = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Where a page begins."""

    page: int
    start: int


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a document, or a part of it."""

    path: str
    format: Format
    title: str
    text: str
    start: int
    end: Annotated[int, Meta(description="The character after the last that was returned; less than `chars`: go on.")]
    chars: Annotated[int, Meta(description="Characters of the whole text.")]
    page_count: Annotated[int, Meta(description="Pages, slides, sheets, chapters or cells; 0: it has none.")]
    pages: Annotated[list[Page], Meta(description="The pages that the text returned is on.")]
    truncated: Annotated[bool, Meta(description="Whether the document is larger than the limits: its end is missing.")]
    note: Annotated[str, Meta(description="What is missing, and why; may be empty.")]
    sha256: Annotated[Sha256, Meta(description="Of the file's bytes.")]


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[
        str, Meta(min_length=1, max_length=4_096, description="A question or words; any of them makes a passage match.")
    ]
    folder: Annotated[
        str,
        Meta(
            max_length=4_096,
            description="The folder to search, below the open folder; empty: all of it.",
            extra_json_schema={"x-remit-role": "path"},
        ),
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Passages to return at most.")] = 10


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that matches."""

    path: Annotated[str, Meta(description="The document, as doc.read takes it.")]
    title: str
    heading: Annotated[str, Meta(description="The section the passage is part of; may be empty.")]
    page: Annotated[int | None, Meta(description="The page, slide, sheet, chapter or cell that it begins on.")]
    start: Annotated[int, Meta(description="First character of the passage in the document's text.")]
    end: Annotated[int, Meta(description="The character after its last.")]
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    score: Annotated[float, Meta(description="Comparable within one answer only.")]
    snippet: str


Why = Literal["no_text", "too_large", "unreadable"]


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were not read, by reason."""

    no_text: Annotated[int, Meta(description="Not a document, damaged or encrypted.")]
    too_large: int
    unreadable: int


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A document that has no text here."""

    path: str
    why: Why


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Passages, best first, and what was searched."""

    items: list[Item]
    files: Annotated[int, Meta(description="Documents searched.")]
    passages: Annotated[int, Meta(description="Passages they were cut into.")]
    skipped: Skipped
    unread: Annotated[list[Unread], Meta(description="Documents among the skipped files, a hundred at most.")]
    truncated: Annotated[bool, Meta(description="Whether the folder holds more files than a search looks at.")]
    note: Annotated[str, Meta(description="What was left out that could be searched; may be empty.")] = ""


Edits = Annotated[
    list[Replacement],
    Meta(max_length=100, description="Changes, made one after the other; empty if `content` is given."),
]
Content = Annotated[str | None, Meta(description="The whole new text, in place of `edits`.")]


class ProposeArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change to a text file that is to be looked at."""

    path: Path
    edits: Edits = []
    content: Content = None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do. Make it with doc.apply_edit, the same change and this `sha256`."""

    path: str
    changes: Annotated[bool, Meta(description="Whether anything would change.")]
    diff: Annotated[str, Meta(description="Unified diff.")]
    diff_truncated: bool
    sha256: Annotated[Sha256 | None, Meta(description="Of the file as it is now; null: it does not exist yet.")]
    sha256_after: Sha256


class ApplyArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change to a text file, made if the file is what it was when the change was proposed."""

    path: Path
    sha256: Annotated[
        Sha256 | None, Meta(description="Of the file that is changed, from doc.propose_edit; null: it is created.")
    ]
    edits: Edits = []
    content: Content = None


class UndoArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which earlier content of a file to bring back."""

    path: Path
    sha256: Annotated[Sha256, Meta(description="Of the file as it is now, as the edit left it.")]
    back_to: Annotated[Sha256, Meta(description="Of the content to bring back: `sha256_before` of the edit.")]


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    path: str
    change: Literal["created", "edited", "unchanged", "undone"]
    bytes: int
    sha256_before: Annotated[
        Sha256 | None, Meta(description="Kept: doc.undo_edit brings it back. null: there was no file.")
    ]
    sha256: Sha256
