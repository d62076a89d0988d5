"""The section `[documents]`."""

from typing import Annotated

from remit.settings.section import About, Bytes, Count, Seconds, Section


class DocumentSettings(Section, frozen=True):
    """How much of a document is read, and what is kept of edits."""

    max_bytes: Annotated[Bytes, About("The largest file that the document tools read.")] = 32_000_000
    max_pages: Annotated[Count, About("Pages of a PDF that are read; what is left out is said.")] = 2_000
    max_chars: Annotated[Bytes, About("Characters of a document that are read; what is left out is said.")] = 5_000_000
    seconds: Annotated[Seconds, About("Seconds that a process may take to find the text of a document.")] = 20
    undo: Annotated[Count, About("Earlier contents of edited files that are kept.")] = 500
