"""The text of a PDF, page by page, as PDFium finds it.

Call it in a process that may be killed: PDFium is C++, and PDFs come from anyone.
"""

from __future__ import annotations

from typing import Any, Final

from remit.codes import Code
from remit.files.parse_job import Parsed, ParseJob, Refused, joined
from remit.regex import regex

_LOCKED: Final = frozenset({4, 5})
"""PDFium's codes for a password that is missing or an encryption that it does not know."""
_HYPHEN: Final = "\x02"
"""PDFium's sign for the hyphen of a word that is divided between two lines."""
_CATALOG: Final = regex(rb"/Type\s{0,9}/Catalog\b")
_OBJECT: Final = regex(rb"(\d{1,10}\s{1,9}\d{1,5})\s{1,9}obj\b")
_LOCK: Final = regex(rb"/Filter\s{0,9}/Standard\b")
_NEAR: Final = 4_096
"""Bytes of an object before the word that says what it is."""


def read_pdf(job: ParseJob) -> Parsed | Refused:
    """Return the text of a PDF's first pages."""
    try:
        import pypdfium2  # noqa: PLC0415 - an extra, loaded in workers alone
    except ModuleNotFoundError:
        return Refused(Code.SpawnFailed.name, "pypdfium2 is not installed: pip install 'remit[documents]'")
    try:
        document = _opened(pypdfium2, job.data)
        page_count = len(document)
        filled = document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE
        if filled:
            document.init_forms()
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in _LOCKED:
            return Refused(Code.DOCUMENT_ENCRYPTED.name, "it can only be opened with a password")
        return Refused(Code.DOCUMENT_UNREADABLE.name, "it is no PDF that can be opened")
    pages = (_page(pypdfium2, document, number, filled=filled) for number in range(page_count))
    title = " ".join(str(document.get_metadata_dict().get("Title", "")).replace("\0", "").split())
    return joined(pages, job, title=_clean(title)[:500], page_count=page_count)


def _opened(pypdfium2: Any, data: bytes) -> Any:
    """Open a PDF. PDFium makes its table of objects again, but not a lost trailer, which says where to begin."""
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:
        catalogs = [match.start() for match in _CATALOG.finditer(data)]
        objects = list(_OBJECT.finditer(data, max(0, catalogs[-1] - _NEAR), catalogs[-1])) if catalogs else []
        if not objects or _LOCK.search(data):
            raise
        return pypdfium2.PdfDocument(data + b"\ntrailer << /Root %s R >>\n" % objects[-1][1])


def _page(pypdfium2: Any, document: Any, number: int, *, filled: bool) -> str:
    try:
        page = document[number]
        if filled:  # the values of a form are drawn into the page, as on paper
            pypdfium2.raw.FPDFPage_Flatten(page.raw, pypdfium2.raw.FLAT_NORMALDISPLAY)
            page.close()
            page = document[number]
        text = page.get_textpage()
        plain = str(text.get_text_bounded())
        text.close()
        page.close()
    except pypdfium2.PdfiumError:
        return ""  # one broken page leaves the others readable
    return _clean(plain.replace("\r\n", "\n").replace("\r", "\n").replace(_HYPHEN, "")).strip()


def _clean(text: str) -> str:
    """Text that JSON can carry: no NUL, no lone surrogate."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
