from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.folder.provider import FolderSearchProvider
from remit.tools.provider import ToolResult
from remit_testing.providers import call_context

TEXT = "one\r\ntwo é three\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    library.mkdir()
    (library / "a.txt").write_bytes(TEXT.encode())
    (library / "page.html").write_text("<title>T</title><p>One &amp; two</p>")
    return library


async def read(folder: Path, path: str, **more: Any) -> ToolResult:
    one = FolderSearchProvider(folder.parent / "index")
    return await one.invoke("folder.read", {"folder": str(folder), "path": path, **more}, call_context())


async def refused(folder: Path, path: str, **more: Any) -> Code | None:
    with pytest.raises(ProviderError) as error:
        await read(folder, path, **more)
    return error.value.code


async def test_a_span_is_read_in_characters_of_the_text(folder: Path) -> None:
    assert (await read(folder, "a.txt", start=5, end=10)).value == {
        "path": "a.txt",
        "text": "two é",
        "start": 5,
        "end": 10,
        "sha256": sha256(TEXT.encode()),
        "chars": len(TEXT),
    }


async def test_without_a_span_everything_is_read(folder: Path) -> None:
    assert (await read(folder, "a.txt")).value["text"] == TEXT


@pytest.mark.parametrize(("start", "end", "span"), [(3, 1_000, (3, 17)), (99, None, (17, 17)), (9, 2, (9, 9))])
async def test_a_span_beyond_the_text_is_cut_to_it(
    folder: Path, start: int, end: int | None, span: tuple[int, int]
) -> None:
    value = (await read(folder, "a.txt", start=start, end=end)).value
    assert (value["start"], value["end"]) == span
    assert value["text"] == TEXT[slice(*span)]


async def test_of_a_page_its_text_is_read(folder: Path) -> None:
    assert (await read(folder, "page.html")).value["text"] == "One & two"


async def test_a_reading_leaves_evidence(folder: Path) -> None:
    [evidence] = (await read(folder, "a.txt", start=0, end=3)).evidence
    assert (evidence.text, evidence.source) == ("one", f"{folder}/a.txt")
    assert evidence.metadata == {"sha256": sha256(TEXT.encode()), "start": 0, "end": 3}


async def test_a_file_that_changed_since_the_search_is_refused(folder: Path) -> None:
    digest = sha256(TEXT.encode())
    assert (await read(folder, "a.txt", sha256=digest)).value["sha256"] == digest
    (folder / "a.txt").write_text("other")
    assert await refused(folder, "a.txt", sha256=digest) is Code.FILE_CHANGED


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "out/secret", "link", "pipe", "a\0"])
async def test_no_reading_leaves_the_folder(folder: Path, path: str) -> None:
    (folder.parent / "secret").write_text("secret")
    (folder / "out").symlink_to(folder.parent)
    (folder / "link").symlink_to(folder.parent / "secret")
    os.mkfifo(folder / "pipe")
    assert await refused(folder, path) is Code.PATH_NOT_ALLOWED


async def test_what_no_search_returns_is_not_read(folder: Path) -> None:
    for name in (".env", ".ssh/key", "node_modules/a.js"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("secret")
        assert await refused(folder, name) is Code.PATH_NOT_ALLOWED


async def test_what_cannot_be_read_is_refused_by_code(folder: Path) -> None:
    (folder / "image").write_bytes(b"\0")
    (folder / "large").write_bytes(b"x" * 2_000_001)
    assert await refused(folder, "none") is Code.FILE_NOT_FOUND
    assert await refused(folder, "image") is Code.FILE_NOT_TEXT
    assert await refused(folder, "large") is Code.FILE_TOO_LARGE
    assert await refused(folder, ".") is Code.FILE_IS_FOLDER
