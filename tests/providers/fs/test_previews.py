"""What a write or an edit would change, shown before anybody approves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.fs.provider import FsProvider
from remit.tools.provider import Previews
from tests.providers.fs.test_writing import names, root, swap

__all__ = ["root"]


async def preview(root: Path, tool: str, **args: Any) -> Any:
    provider = FsProvider([root])
    assert isinstance(provider, Previews)
    before = {name: (root / name).read_bytes() for name in names(root)}
    found = await provider.preview(tool, args)
    assert {name: (root / name).read_bytes() for name in names(root)} == before, "a preview changes nothing"
    return found


async def test_a_preview_of_a_write_is_the_diff_to_what_is_there(root: Path) -> None:
    found = await preview(root, "fs.write", path="a.txt", content="one\n2\nthree\nfour\n")
    assert found.what == "Replaces a.txt: 3 lines now, 4 lines afterwards."
    assert found.diff.split("\n")[2:-1] == ["@@ -1,3 +1,4 @@", " one", "-two", "+2", " three", "+four"]


async def test_a_preview_shows_a_long_change_whole(root: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(5_000))
    found = await preview(root, "fs.write", path="a.txt", content=content)
    assert found.diff.count("\n+line") == 5_000


async def test_a_preview_tells_a_new_file_and_an_unchanged_one(root: Path) -> None:
    made = await preview(root, "fs.write", path="b.txt", content="x")
    assert (made.what, "\n+x" in made.diff) == ("Creates b.txt, 1 line.", True)
    found = await preview(root, "fs.write", path="c/b.txt", content="x\ny", create_folders=True)
    assert found.what == "Creates c/b.txt, 2 lines."
    same = await preview(root, "fs.write", path="a.txt", content="one\ntwo\nthree\n")
    assert (same.what, same.diff) == ("Changes nothing: a.txt already holds this content.", "")


async def test_a_preview_of_what_is_no_text_says_so(root: Path) -> None:
    (root / "a.bin").write_bytes(b"\xff\x00")
    found = await preview(root, "fs.write", path="a.bin", content="x")
    assert found.what == "Replaces a.bin, which is not text or too large to compare, by 1 line."


async def test_a_preview_of_an_edit_is_its_diff(root: Path) -> None:
    found = await preview(root, "fs.edit", path="a.txt", edits=[swap("two\n", "")])
    assert found.what == "Edits a.txt: 3 lines now, 2 lines afterwards."
    assert "-two\n" in found.diff


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("fs.write", {"path": "c/b.txt", "content": "x"}, Code.FOLDER_NOT_FOUND),
        ("fs.write", {"path": "../b.txt", "content": "x"}, Code.PATH_NOT_ALLOWED),
        ("fs.write", {"path": "remit.toml", "content": "x"}, Code.PATH_NOT_ALLOWED),
        ("fs.write", {"path": "a.txt", "content": "x", "expect_sha256": "sha256:" + "0" * 64}, Code.FILE_CHANGED),
        ("fs.edit", {"path": "a.txt", "edits": [swap("four", "4")]}, Code.EDIT_NO_MATCH),
        ("fs.edit", {"path": "b.txt", "edits": [swap("four", "4")]}, Code.FILE_NOT_FOUND),
    ],
)
async def test_a_preview_fails_as_the_call_would(root: Path, tool: str, args: dict[str, Any], code: Code) -> None:
    with pytest.raises(ProviderError) as error:
        await preview(root, tool, **args)
    assert error.value.code is code


async def test_a_tool_that_reads_has_no_preview(root: Path) -> None:
    assert await preview(root, "fs.read", path="a.txt") is None
