"""Searching documents: one index for all of them, which points to pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.files.replacement import Roots
from remit.parts.documents.documents import Documents
from remit.parts.documents.provider import DocProvider
from remit.parts.documents.settings import DocumentSettings
from remit.process.workers import WorkerPool
from remit_testing.providers import call_context
from tests.parts.documents.made import docx, paragraph, pdf
from tests.parts.documents.shelf import Shelf, shelf


def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formats of documents that are parsed from now on."""
    seen: list[str] = []
    original = WorkerPool.ask

    async def noted(self: WorkerPool[Any], job: Any) -> Any:
        seen.append(job.format)
        return await original(self, job)

    monkeypatch.setattr(WorkerPool, "ask", noted)
    return seen


def filled(docs: Shelf) -> None:
    docs.put("plans/budget.pdf", pdf(["A committee meets.", "The budget allows 900 euros for heating."]))
    docs.put("plans/heat.docx", docx(paragraph("Heating is turned off in May.")))
    docs.put("notes.md", "# Notes\n\nNothing about warmth.")


async def test_a_passage_of_a_pdf_names_its_page_and_is_read_there(tmp_path: Path) -> None:
    async with shelf(tmp_path) as docs:
        filled(docs)
        found = await docs.call("search", query="900 euros for heating")
        best = found["items"][0]
        assert (best["path"], best["page"], found["files"]) == ("plans/budget.pdf", 2, 3)
        read = await docs.call("read", path=best["path"], start=best["start"], end=best["end"], sha256=best["sha256"])
        assert read["text"] == "The budget allows 900 euros for heating."
        assert [item["path"] for item in found["items"]] == ["plans/budget.pdf", "plans/heat.docx"]


async def test_where_pdfs_cannot_be_read_a_search_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "pypdfium2.py").write_text("raise ModuleNotFoundError")
    monkeypatch.setenv("PYTHONPATH", str(absent))
    monkeypatch.setattr(Documents, "reads_pdf", False)
    async with shelf(tmp_path) as docs:
        filled(docs)
        found = await docs.call("search", query="heating")
        assert (found["files"], found["skipped"]["no_text"]) == (2, 1)
        assert found["unread"] == [{"path": "plans/budget.pdf", "why": "no_text"}]
        assert "remit[documents]" in found["note"]
        (docs.folder / "plans/budget.pdf").unlink()
        assert (await docs.call("search", query="heating"))["note"] == ""


async def test_a_search_parses_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shelf(tmp_path) as docs:
        filled(docs)
        seen = parses(monkeypatch)
        await docs.call("search", query="heating")
        assert sorted(seen) == ["docx", "pdf"]
        docs.put("plans/more.pdf", pdf(["Heating costs more."]))
        docs.provider._documents._recent.clear()
        seen.clear()
        found = await docs.call("search", query="heating")
        assert seen == ["pdf"]
        assert found["passages"] == 5


async def test_a_folder_can_be_searched_by_itself_and_a_hidden_one_cannot(tmp_path: Path) -> None:
    async with shelf(tmp_path) as docs:
        filled(docs)
        docs.put(".git/heating.md", "heating")
        found = await docs.call("search", query="heating notes", folder="plans/")
        assert {item["path"] for item in found["items"]} == {"plans/budget.pdf", "plans/heat.docx"}
        assert (await docs.refused("search", query="x", folder=".git"))[0] is Code.PATH_NOT_ALLOWED
        assert (await docs.refused("search", query="x", folder="none"))[0] is Code.FOLDER_NOT_FOUND


async def test_what_the_caller_may_not_read_is_not_found(tmp_path: Path) -> None:
    async with shelf(tmp_path) as docs:
        filled(docs)
        hidden = call_context(hidden=lambda tool, args: tool == "doc.read" and args["path"].endswith(".pdf"))
        found = (await docs.provider.invoke("doc.search", {"query": "heating"}, hidden)).value
        assert [item["path"] for item in found["items"]] == ["plans/heat.docx"]


async def test_with_several_roots_a_folder_is_named_by_its_root(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("heating")
    roots = Roots([tmp_path / "one", tmp_path / "two"])
    provider = DocProvider(roots, DocumentSettings(), index_dir=tmp_path / "index", undo_dir=tmp_path / "undo")
    docs = Shelf(tmp_path, provider)
    found = await docs.call("search", query="heating", folder="two")
    assert [item["path"] for item in found["items"]] == ["two/a.md"]
    assert (await docs.call("read", path="two/a.md"))["text"] == "heating"
    code, why = await docs.refused("search", query="heating")
    assert (code, "one, two" in why) == (Code.PATH_NOT_ALLOWED, True)
    await provider.close()


async def test_a_document_without_text_is_counted_and_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shelf(tmp_path) as docs:
        docs.put("a.pdf", b"%PDF-1.4 rubbish")
        seen = parses(monkeypatch)
        for _ in range(2):
            assert (await docs.call("search", query="x"))["skipped"]["no_text"] == 1
        assert seen == ["pdf"] * len(seen)
