"""Documents that were made to harm who reads them: each is an answer in words, and the next document is read."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.files.parse_job import ParseJob, Refused
from remit.parts.documents.parser import parse
from tests.parts.documents.made import W, archive, docx, encrypted_pdf, notebook, paragraph, pdf
from tests.parts.documents.shelf import Shelf, shelf

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
BOMB = f'<!DOCTYPE d [<!ENTITY l0 "ha">{LAUGHS}]><w:document {W}><w:t>&l11;</w:t></w:document>'
OUTSIDE = f'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><w:document {W}><w:t>&x;</w:t></w:document>'
MANY = {f"f{n}": "" for n in range(10_050)}
WHOLE = pdf(["page one", "page two"])


def bomb() -> bytes:
    return archive({"word/document.xml": f"<w:document {W}><w:t>" + "x" * 70_000_000})


UNREADABLE, ENCRYPTED, NOT_TEXT = Code.DOCUMENT_UNREADABLE, Code.DOCUMENT_ENCRYPTED, Code.FILE_NOT_TEXT
REFUSED: dict[str, tuple[str, bytes | Callable[[], bytes], Code, str]] = {
    "a zip bomb": (
        "a.docx",
        bomb,
        UNREADABLE,
        "unpacks to more than",
    ),
    "an entity bomb": ("a.docx", archive({"word/document.xml": BOMB}), UNREADABLE, "DTD"),
    "an entity bomb in UTF-16": ("a.docx", archive({"word/document.xml": BOMB.encode("utf-16")}), UNREADABLE, "DTD"),
    "an entity that names a file": ("a.docx", archive({"word/document.xml": OUTSIDE}), UNREADABLE, "DTD"),
    "a bomb in the styles": ("a.docx", docx("", {"word/styles.xml": BOMB}), UNREADABLE, "DTD"),
    "XML nested deep": ("a.docx", docx("<w:p>" * 5_000), UNREADABLE, "nested"),
    "a locked PDF cut before its trailer": (
        "a.pdf",
        WHOLE[: WHOLE.index(b"\nxref")] + b"\n9 0 obj << /Filter /Standard >> endobj",
        UNREADABLE,
        "no PDF",
    ),
    "XML that ends early": ("a.docx", archive({"word/document.xml": f"<w:document {W}><w:p>"}), UNREADABLE, "damaged"),
    "a ZIP cut short": ("a.docx", docx(paragraph("x" * 9_000))[:-30], UNREADABLE, "damaged"),
    "a ZIP with bytes changed": ("a.docx", docx("x" * 999).replace(b"K\x03", b"K\x07", 1), NOT_TEXT, "not text"),
    "a ZIP of ten thousand files": ("a.docx", archive({**MANY, "word/document.xml": ""}), UNREADABLE, "10,000 parts"),
    "a ZIP that only names the file": ("a.docx", archive({"x": "word/document.xml"}), NOT_TEXT, "an archive"),
    "a document of an older Office": ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\0", NOT_TEXT, "older Office"),
    "an encrypted PDF": ("a.pdf", encrypted_pdf(), ENCRYPTED, "password"),
    "half a PDF": ("a.pdf", WHOLE[: len(WHOLE) // 2], UNREADABLE, "no PDF that can be opened"),
    "a PDF of rubbish": ("a.pdf", b"%PDF-1.7\n" + bytes(range(256)) * 99, UNREADABLE, "no PDF"),
    "deep JSON": (
        "a.ipynb",
        b'{"cells": [{"cell_type": "x", "metadata": ' + b"[" * 90_000,
        UNREADABLE,
        "nested too deeply",
    ),
    "JSON of another shape": ("a.ipynb", b'{"cells": {"a": 1}}', UNREADABLE, "no notebook"),
    "NUL bytes": ("a.txt", b"one\0two", NOT_TEXT, "not text"),
    "invalid UTF-8": ("a.md", b"caf\xe9 \xff", NOT_TEXT, "not text"),
    "a picture named as text": ("a.txt", b"\x89PNG\r\n\x1a\n\0\0", NOT_TEXT, "a picture"),
    "a PDF that begins late": ("a.txt", b"\0" * 50 + WHOLE, NOT_TEXT, "not text"),
}
READ: dict[str, tuple[str, bytes, str, str]] = {
    "a PDF named as text": ("a.txt", WHOLE, "pdf", "page one"),
    "a Word document named as PDF": ("a.pdf", docx(paragraph("words")), "docx", "words"),
    "a broken xref": ("a.pdf", WHOLE.replace(b"startxref\n", b"startxref\n9"), "pdf", "page one"),
    "a PDF cut before its trailer": ("a.pdf", WHOLE[: WHOLE.index(b"\nxref")], "pdf", "page one"),
    "a PDF whose pages are a circle": (
        "a.pdf",
        WHOLE.replace(b"/Kids [5 0 R 7 0 R]", b"/Kids [2 0 R 2 0 R]"),
        "pdf",
        "",
    ),
    "rubbish before a PDF": ("a.pdf", b"\0" * 100 + WHOLE, "pdf", "page one"),
    "a huge CSV field": ("a.csv", b"a,b\n1," + b"x" * 3_000_000, "csv", "a,b"),
    "an open quotation in CSV": ("a.csv", b'a,"b\n1,2\n' * 1_000, "csv", "a,"),
    "HTML full of comments": ("a.html", b"<!--" * 100_000 + b"--><p>words", "html", ""),
    "one line of a million letters": ("a.md", b"#" * 1_000_000, "markdown", "#"),
    "a notebook with strange outputs": (
        "a.ipynb",
        notebook([{"cell_type": "code", "source": "x", "outputs": [{"data": {"text/plain": {"a": 1}}}]}]),
        "ipynb",
        "```python\nx\n```",
    ),
}


@pytest.fixture
async def docs(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with shelf(tmp_path) as docs:
        yield docs


@pytest.mark.slow
async def test_what_cannot_be_read_is_refused_in_words_and_the_next_document_is_read(docs: Shelf) -> None:
    for title, (name, content, code, words) in REFUSED.items():
        docs.put(name, content if isinstance(content, bytes) else content())
        refused = await docs.refused("read", path=name)
        assert refused[0] is code, f"{title}: {refused}"
        assert words in refused[1], f"{title}: {refused}"
        (docs.folder / name).unlink()
        docs.put("good.pdf", WHOLE)
        assert (await docs.call("read", path="good.pdf"))["chars"] == 18, title


@pytest.mark.slow
async def test_what_can_be_read_is_read_for_what_it_is(docs: Shelf) -> None:
    for title, (name, content, form, text) in READ.items():
        docs.put(name, content)
        found = await docs.call("read", path=name)
        assert found["format"] == form, title
        assert found["text"].startswith(text), title


@pytest.mark.slow
async def test_of_ten_thousand_pages_the_first_are_read(docs: Shelf) -> None:
    docs.put("a.pdf", pdf([f"page {number}" for number in range(1, 10_001)]))
    found = await docs.call("read", path="a.pdf", pages="2000")
    assert (found["text"], found["page_count"], found["truncated"]) == ("page 2000", 10_000, True)
    assert found["note"].startswith("Pages 2,001 to 10,000 were not read")


async def test_what_is_no_file_below_the_folder_is_not_read(docs: Shelf, tmp_path: Path) -> None:
    (tmp_path / "secret.pdf").write_bytes(WHOLE)
    (docs.folder / "link.pdf").symlink_to(tmp_path / "secret.pdf")
    (docs.folder / "up").symlink_to(tmp_path)
    os.mkfifo(docs.folder / "pipe.pdf")
    docs.put("a.txt", "words")
    for path in ("link.pdf", "up/secret.pdf", "pipe.pdf", "../secret.pdf", "/etc/passwd", ".remit/x"):
        assert (await docs.refused("read", path=path))[0] is Code.PATH_NOT_ALLOWED, path
    found = await docs.call("search", query="page words")
    assert [item["path"] for item in found["items"]] == ["a.txt"]


async def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with shelf(tmp_path, max_bytes=1_000) as docs:
        docs.put("a.pdf", WHOLE + b"\n" * 1_000)
        assert (await docs.refused("read", path="a.pdf"))[0] is Code.FILE_TOO_LARGE
        found = await docs.call("search", query="page")
        assert (found["files"], found["skipped"]["too_large"]) == (0, 1)


def test_a_document_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.parts.documents.package._ELEMENTS", 100)
    job = ParseJob(format="docx", data=docx("<w:p/>" * 100), pages=9, chars=9)
    assert parse(job) == Refused(UNREADABLE.name, "it has more than 100 elements")


@pytest.mark.slow
async def test_a_document_that_takes_too_long_or_too_much_memory_is_refused(docs: Shelf) -> None:
    documents: Any = docs.provider._documents
    docs.put("a.pdf", WHOLE)
    documents._workers._seconds = 0.0
    code, why = await docs.refused("read", path="a.pdf")
    assert (code, "documents.seconds" in why) == (UNREADABLE, True)
    documents._workers._seconds = 60.0
    await docs.call("read", path="a.pdf")
    kill_with_the_next_job(documents._workers._free[0])
    documents._recent.clear()
    code, why = await docs.refused("read", path="a.pdf")
    assert (code, "memory" in why) == (UNREADABLE, True)
    assert (await docs.call("read", path="a.pdf"))["chars"] == 18


@pytest.mark.slow
async def test_a_process_that_ended_while_it_had_no_document_is_replaced(docs: Shelf) -> None:
    documents: Any = docs.provider._documents
    docs.put("a.pdf", WHOLE)
    await docs.call("read", path="a.pdf")
    idle = documents._workers._free[0]
    idle.send_signal(signal.SIGKILL)
    await idle.ended()
    documents._recent.clear()
    assert (await docs.call("read", path="a.pdf"))["chars"] == 18


def kill_with_the_next_job(worker: Any) -> None:
    """Have a process that has been given a job end before it can answer."""
    write = worker.write

    def deadly(data: bytes) -> None:
        write(data)
        worker.send_signal(signal.SIGKILL)

    worker.send_signal(signal.SIGSTOP)
    worker.write = deadly
