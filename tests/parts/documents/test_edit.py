"""Edits in two phases: what was shown is what is written, and it can be undone."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.documents.edit import KeptContents
from remit_testing.providers import call_context
from tests.parts.documents.made import pdf
from tests.parts.documents.shelf import Shelf, shelf

TEXT = "one\ntwo\nthree\n"
SWAP = [{"search": "two", "replace": "2"}]


@pytest.fixture
async def docs(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with shelf(tmp_path) as docs:
        docs.put("a.md", TEXT)
        yield docs


def of(text: str) -> str:
    return sha256(text.encode())


async def test_a_proposal_shows_the_change_and_makes_none(docs: Shelf) -> None:
    found = await docs.call("propose_edit", path="a.md", edits=SWAP)
    assert found["diff"].endswith("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    assert (found["sha256"], found["sha256_after"], found["changes"]) == (of(TEXT), of("one\n2\nthree\n"), True)
    assert (docs.folder / "a.md").read_text() == TEXT
    same = await docs.call("propose_edit", path="a.md", content=TEXT)
    assert (same["changes"], same["diff"]) == (False, "")
    new = await docs.call("propose_edit", path="b.md", content="x\n")
    assert (new["sha256"], new["diff"].endswith("+x\n")) == (None, True)


async def test_a_file_that_the_caller_may_not_read_is_not_shown_as_a_diff(docs: Shelf) -> None:
    hidden = call_context(hidden=lambda tool, args: (tool, args) == ("doc.read", {"path": "a.md"}))
    with pytest.raises(ProviderError, match="kept from you") as caught:
        await docs.provider.invoke("doc.propose_edit", {"path": "a.md", "content": ""}, hidden)
    assert caught.value.code is Code.PATH_NOT_ALLOWED


async def test_what_was_proposed_is_applied_kept_and_undone(docs: Shelf) -> None:
    proposed = await docs.call("propose_edit", path="a.md", edits=SWAP)
    made = await docs.call("apply_edit", path="a.md", sha256=proposed["sha256"], edits=SWAP)
    assert (docs.folder / "a.md").read_text() == "one\n2\nthree\n"
    assert made == {
        "path": "a.md",
        "change": "edited",
        "bytes": 12,
        "sha256_before": of(TEXT),
        "sha256": proposed["sha256_after"],
    }
    undone = await docs.call("undo_edit", path="a.md", sha256=made["sha256"], back_to=made["sha256_before"])
    assert ((docs.folder / "a.md").read_text(), undone["change"]) == (TEXT, "undone")
    await docs.call("undo_edit", path="a.md", sha256=of(TEXT), back_to=made["sha256"])
    assert (docs.folder / "a.md").read_text() == "one\n2\nthree\n"


async def test_a_file_that_changed_since_is_not_edited(docs: Shelf) -> None:
    docs.put("a.md", TEXT + "four\n")
    assert (await docs.refused("apply_edit", path="a.md", sha256=of(TEXT), edits=SWAP))[0] is Code.FILE_CHANGED
    assert (await docs.refused("apply_edit", path="a.md", sha256=None, content="x"))[0] is Code.FILE_CHANGED
    assert (await docs.refused("apply_edit", path="gone.md", sha256=of(TEXT), content="x"))[0] is Code.FILE_CHANGED
    assert (docs.folder / "a.md").read_text() == TEXT + "four\n"


async def test_a_repetition_finds_its_own_work(docs: Shelf) -> None:
    args = {"path": "a.md", "sha256": of(TEXT), "edits": SWAP}
    first = await docs.call("apply_edit", **args)
    again = await docs.call("apply_edit", **args)
    assert (again["change"], again["sha256"]) == ("unchanged", first["sha256"])
    new = {"path": "b.md", "sha256": None, "content": "x"}
    assert [(await docs.call("apply_edit", **new))["change"] for _ in range(2)] == ["created", "unchanged"]


async def test_a_call_without_a_known_end_is_settled_by_what_the_file_holds(docs: Shelf) -> None:
    args: dict[str, Any] = {"path": "a.md", "sha256": of(TEXT), "edits": SWAP}
    undo: dict[str, Any] = {"path": "a.md", "sha256": of("one\n2\nthree\n"), "back_to": of(TEXT)}
    ctx = call_context()
    assert await docs.provider.reconcile("doc.apply_edit", args, ctx) is None
    await docs.call("apply_edit", **args)
    found = await docs.provider.reconcile("doc.apply_edit", args, ctx)
    assert found is not None
    assert found.value["change"] == "edited"
    assert await docs.provider.reconcile("doc.undo_edit", undo, ctx) is None
    await docs.call("undo_edit", **undo)
    found = await docs.provider.reconcile("doc.undo_edit", undo, ctx)
    assert found is not None
    docs.put("a.md", "something else")
    with pytest.raises(ProviderError) as caught:
        await docs.provider.reconcile("doc.apply_edit", args, ctx)
    assert caught.value.code is Code.OUTCOME_UNKNOWN


async def test_a_crash_after_the_content_is_kept_leaves_the_old_file_and_the_edit_can_be_made(
    docs: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("remit.files.replacement.os.rename", crash)
        assert (await docs.refused("apply_edit", path="a.md", sha256=of(TEXT), edits=SWAP))[0] is Code.FILE_IO_FAILED
    assert (docs.folder / "a.md").read_text() == TEXT
    assert [path.name for path in docs.folder.iterdir()] == ["a.md"]
    assert len(list((tmp_path / "undo").iterdir())) == 1
    assert (await docs.call("apply_edit", path="a.md", sha256=of(TEXT), edits=SWAP))["change"] == "edited"


async def test_previews_show_what_would_be_written_and_write_nothing(docs: Shelf) -> None:
    found = await docs.provider.preview("doc.apply_edit", {"path": "a.md", "sha256": of(TEXT), "edits": SWAP})
    assert found is not None
    assert found.what == "Edits a.md: 3 lines now, 3 lines afterwards."
    assert "-two\n+2\n" in found.diff
    found = await docs.provider.preview("doc.apply_edit", {"path": "b.md", "sha256": None, "content": "x"})
    assert found is not None
    assert (found.what, "+x" in found.diff) == ("Creates b.md, 1 line.", True)
    with pytest.raises(ProviderError, match="changed since"):
        await docs.provider.preview("doc.apply_edit", {"path": "a.md", "sha256": of("x"), "edits": SWAP})
    with pytest.raises(ProviderError, match="is kept"):
        await docs.provider.preview("doc.undo_edit", {"path": "a.md", "sha256": of(TEXT), "back_to": of("x")})
    assert (docs.folder / "a.md").read_text() == TEXT
    assert await docs.provider.preview("doc.read", {"path": "a.md"}) is None


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"path": "a.md", "edits": [{"search": "e", "replace": "x"}]}, Code.EDIT_NO_MATCH),
        ({"path": "a.md", "edits": [{"search": "four", "replace": "4"}]}, Code.EDIT_NO_MATCH),
        ({"path": "a.md", "edits": SWAP, "content": "x"}, Code.InvalidInput),
        ({"path": "a.md"}, Code.InvalidInput),
        ({"path": "b.md", "edits": SWAP}, Code.FILE_NOT_FOUND),
        ({"path": "a.pdf", "edits": SWAP}, Code.FILE_NOT_TEXT),
        ({"path": "a.pdf", "content": "x"}, Code.FILE_NOT_TEXT),
        ({"path": "link.md", "content": "x"}, Code.PATH_NOT_ALLOWED),
        ({"path": "remit.toml", "content": "x"}, Code.PATH_NOT_ALLOWED),
        ({"path": ".remit/x", "content": "x"}, Code.PATH_NOT_ALLOWED),
        ({"path": "no/b.md", "content": "x"}, Code.FOLDER_NOT_FOUND),
    ],
)
async def test_what_cannot_be_edited_is_refused(docs: Shelf, args: dict[str, Any], code: Code) -> None:
    docs.put("a.pdf", pdf(["x"]) + b"\xff")
    (docs.folder / "link.md").symlink_to(docs.folder / "a.md")
    assert (await docs.refused("propose_edit", **args))[0] is code


async def test_a_content_is_kept_for_its_own_file_alone(docs: Shelf) -> None:
    docs.put("b.md", "other\n")
    await docs.call("apply_edit", path="a.md", sha256=of(TEXT), content="x\n")
    code, _ = await docs.refused("undo_edit", path="b.md", sha256=of("other\n"), back_to=of(TEXT))
    assert code is Code.UNDO_NOT_KEPT


def test_only_the_newest_contents_are_kept_and_a_damaged_one_is_not_brought_back(tmp_path: Path) -> None:
    kept = KeptContents(tmp_path / "undo", 2)
    for number, text in enumerate((b"1", b"2", b"3")):
        kept.put("/a", text)
        for path in (tmp_path / "undo").iterdir():
            if path.read_bytes() == text:
                os.utime(path, ns=(number, number))
    kept.put("/a", b"3")
    assert [kept.get("/a", sha256(text)) for text in (b"1", b"2", b"3")] == [None, b"2", b"3"]
    for path in (tmp_path / "undo").iterdir():
        path.write_bytes(b"damaged")
    assert kept.get("/a", sha256(b"3")) is None
