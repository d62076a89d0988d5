"""Documents as text: what kind of file one is, and its text, found in a process of its own where that is a risk."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import wait
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.parse_job import Parsed, ParseJob, Refused
from remit.files.text import ReadableText, decode, readable, suffix_of
from remit.parts.documents.shapes import Format
from remit.process.workers import WorkerPool
from remit.threads import StopEvent, StoppedError

if TYPE_CHECKING:
    from remit.parts.documents.settings import DocumentSettings

_PARSED: Final = frozenset({"pdf", "docx", "pptx", "xlsx", "epub", "ipynb"})
_HYPERTEXT: Final = frozenset({".html", ".htm", ".xhtml"})
_MARKDOWN: Final = frozenset({".md", ".markdown", ".mdx"})
_TABLES: Final = frozenset({".csv", ".tsv"})
_PDF: Final = b"%PDF-"
_PDF_WITHIN: Final = 1_024
"""Bytes before a PDF's own beginning that its readers pass over."""
_ZIP: Final = b"PK\x03\x04"
_ARCHIVES: Final[tuple[tuple[bytes, Format], ...]] = (
    (b"word/document", "docx"),
    (b"ppt/presentation", "pptx"),
    (b"xl/workbook", "xlsx"),
    (b"META-INF/container.xml", "epub"),
)
"""Names of parts by which a ZIP is known; one document may lie within another."""
_OFFICE: Final = b"[Content_Types].xml"
"""The one part whose name is the same in every Office document."""
_OTHERS: Final = (
    (b"\xd0\xcf\x11\xe0", "a document of an older Office, or one with a password"),
    (b"PK\x03\x04", "an archive"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
)
"""Beginnings of files that are not read, and what they are."""
_PROCESSES: Final = 2
_RECENT_CHARS: Final = 32_000_000
"""Characters of parsed documents that are kept: an agent reads one page after the other."""
_BUSY_S: Final = 0.1
"""Between two looks at whether the work is still awaited."""

Ask = Callable[[ParseJob], Parsed | Refused]
"""Has a document parsed, and waits for it; not on the event loop."""


class ReadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read."""

    format: Format
    parsed: Parsed


class Documents:
    """Reads documents within the limits of the settings."""

    def __init__(self, settings: DocumentSettings) -> None:
        self.max_bytes = settings.max_bytes
        self._pages, self._chars, self._seconds = settings.max_pages, settings.max_chars, settings.seconds
        self._workers: WorkerPool[Parsed | Refused] = WorkerPool(
            "remit.parts.documents.parser", Parsed | Refused, _PROCESSES, settings.seconds
        )
        self._recent: OrderedDict[tuple[str, str], Parsed] = OrderedDict()

    @property
    def reads_pdf(self) -> bool:
        """Return whether PDFs can be read here."""
        return find_spec("pypdfium2") is not None

    @property
    def kind(self) -> str:
        """A name for how documents are read now: what was read in another way is not the same text."""
        return f"documents:2:{self.max_bytes}:{self._pages}:{self._chars}:{self.reads_pdf}:"

    def open(self, path: str, data: bytes, ask: Ask) -> ReadDocument:
        """The text of a document. Raises ProviderError, StoppedError."""
        form = format_of(path, data)
        if form in _PARSED:
            return ReadDocument(format=form, parsed=self._parsed(path, form, data, ask))
        page_read = readable("page.html" if form == "html" else "text.txt", data)
        if page_read is None:
            raise _no_text(path, data)
        text, cut = page_read.text[: self._chars], len(page_read.text) > self._chars
        note = f"{page_read.hidden:,} characters that the page hides were left out." if page_read.hidden else ""
        return ReadDocument(format=form, parsed=Parsed(text=text, title=page_read.title, truncated=cut, note=note))

    def source(self, path: str, data: bytes) -> ReadDocument:
        """The text of a file as it stands there. Raises ProviderError (FILE_NOT_TEXT)."""
        text = decode(data)
        if text is None:
            raise _no_text(path, data)
        cut = len(text) > self._chars
        return ReadDocument(format=format_of(path, data), parsed=Parsed(text=text[: self._chars], truncated=cut))

    def reader(self, ask: Ask) -> Callable[[str, bytes], ReadableText | None]:
        """Return the function with which an index reads documents."""

        def read(path: str, data: bytes) -> ReadableText | None:
            try:
                document = self.open(path, data, ask)
            except ProviderError:
                return None
            parsed = document.parsed
            return ReadableText(parsed.text, parsed.title, parsed.pages, costly=document.format in _PARSED)

        return read

    def asker(self, loop: asyncio.AbstractEventLoop, stop: StopEvent) -> Ask:
        """Have documents parsed by workers that live on `loop`, from a thread whose work ends with `stop`."""

        def ask(job: ParseJob) -> Parsed | Refused:
            future = asyncio.run_coroutine_threadsafe(self._answer(job), loop)
            while not wait([future], timeout=_BUSY_S).done:
                if stop.is_set():
                    future.cancel()
                    raise StoppedError
            return future.result()

        return ask

    async def close(self) -> None:
        """End the workers."""
        await self._workers.close()

    async def _answer(self, job: ParseJob) -> Parsed | Refused:
        try:
            return await self._workers.ask(job)
        except TimeoutError:
            reason = f"its text was not found within {self._seconds:g} s (documents.seconds)"
        except ConnectionError:
            reason = "finding its text took too much memory, or ended the process that looked for it"
        return Refused(Code.DOCUMENT_UNREADABLE.name, reason)

    def _parsed(self, path: str, form: Format, data: bytes, ask: Ask) -> Parsed:
        key = (form, sha256(data))
        parsed = self._recent.pop(key, None) or self._noted(_parsed(path, form, data, self._pages, self._chars, ask))
        self._recent[key] = parsed
        while len(self._recent) > 1 and sum(len(document.text) for document in self._recent.values()) > _RECENT_CHARS:
            self._recent.popitem(last=False)
        return parsed

    def _noted(self, parsed: Parsed) -> Parsed:
        """Say what is missing."""
        read, count = len(parsed.pages), parsed.page_count
        note = ""
        if read < count:
            note = f"Pages {read + 1:,} to {count:,} were not read (documents.max_pages, documents.max_chars)."
        elif parsed.truncated:
            note = "The end was not read (documents.max_chars)."
        elif not parsed.text.strip():
            note = "It holds no text; that may stand in pictures or charts, which are not read."
        return msgspec.structs.replace(parsed, note=note)


def _no_text(path: str, data: bytes) -> ProviderError:
    kind = next((words for beginning, words in _OTHERS if data.startswith(beginning)), "")
    reason = f"is {kind}, which is not read: save it as PDF" if kind else "is not text in a known encoding"
    return ProviderError(f"{path!r} {reason}.", code=Code.FILE_NOT_TEXT)


def format_of(path: str, data: bytes) -> Format:
    """Return the format of a file, by what it holds rather than by its name."""
    suffix = suffix_of(path)
    if data.lstrip()[:5] == _PDF if suffix != ".pdf" else _PDF in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(_ZIP):
        forms = [form for mark, form in _ARCHIVES if mark in data]
        if not forms and _OFFICE in data:  # its parts may have any names
            forms = [form for _, form in _ARCHIVES if f".{form}" == suffix]
        if forms:
            return next((form for form in forms if f".{form}" == suffix), forms[0])
    if suffix == ".ipynb":
        return "ipynb"
    if suffix in _HYPERTEXT:
        return "html"
    if suffix in _MARKDOWN:
        return "markdown"
    return "csv" if suffix in _TABLES else "text"


def _parsed(path: str, form: Format, data: bytes, pages: int, chars: int, ask: Ask) -> Parsed:
    answer = ask(ParseJob(format=form, data=data, pages=pages, chars=chars))
    if isinstance(answer, Refused):
        code = Code.recorded(answer.code, Code.TOOL_EXEC_FAILED)
        if code is Code.SpawnFailed:
            raise ProviderError(answer.reason, cause=code)
        raise ProviderError(f"{path!r}: {answer.reason}.", cause=None, code=code)
    return answer
