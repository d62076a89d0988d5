from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.fs.provider import FsProvider
from remit.tools.provider import Reconciles
from remit_testing.providers import call_context


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    return folder


async def call(root: Path, tool: str, **args: Any) -> Any:
    return (await FsProvider([root]).invoke(tool, args, call_context())).value


async def refused(root: Path, tool: str, **args: Any) -> ProviderError:
    with pytest.raises(ProviderError) as error:
        await call(root, tool, **args)
    return error.value


async def found(root: Path, tool: str, **args: Any) -> Any:
    """What a reconciliation gives."""
    result = await FsProvider([root]).reconcile(tool, args, call_context())
    return None if result is None else result.value


def digest(path: Path) -> str:
    return sha256(path.read_bytes())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def swap(search: str, replace: str) -> dict[str, str]:
    return {"search": search, "replace": replace}


# --- fs.write


async def test_a_new_file_is_created(root: Path) -> None:
    result = await call(root, "fs.write", path="b.txt", content="né\n")
    assert (root / "b.txt").read_bytes() == "né\n".encode()
    assert result == {"path": "b.txt", "change": "created", "bytes": 4, "sha256": digest(root / "b.txt")}


async def test_an_old_file_is_replaced_and_keeps_its_permissions(root: Path) -> None:
    (root / "a.txt").chmod(0o640)
    assert (await call(root, "fs.write", path="a.txt", content="new"))["change"] == "replaced"
    assert (root / "a.txt").read_text() == "new"
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o640


async def test_content_never_inherits_the_right_to_run_as_somebody_else(root: Path) -> None:
    (root / "a.txt").chmod(0o4755)
    await call(root, "fs.write", path="a.txt", content="#!/bin/sh\n")
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o755


async def test_the_same_content_again_changes_nothing(root: Path) -> None:
    before = (root / "a.txt").stat()
    result = await call(root, "fs.write", path="a.txt", content="one\ntwo\nthree\n")
    assert result["change"] == "unchanged"
    assert (root / "a.txt").stat().st_ino == before.st_ino


async def test_other_content_of_the_same_length_replaces(root: Path) -> None:
    assert (await call(root, "fs.write", path="a.txt", content="eno\ntwo\nthree\n"))["change"] == "replaced"


async def test_a_hard_link_elsewhere_keeps_the_old_content(root: Path, tmp_path: Path) -> None:
    os.link(root / "a.txt", tmp_path / "elsewhere")
    await call(root, "fs.write", path="a.txt", content="new")
    assert (tmp_path / "elsewhere").read_text() == "one\ntwo\nthree\n"


async def test_missing_folders_are_made_on_request_only(root: Path) -> None:
    assert (await refused(root, "fs.write", path="x/y/b.txt", content="")).code is Code.FOLDER_NOT_FOUND
    assert names(root) == ["a.txt"]
    await call(root, "fs.write", path="x/y/b.txt", content="deep", create_folders=True)
    assert (root / "x" / "y" / "b.txt").read_text() == "deep"


@pytest.mark.parametrize("path", ["../b.txt", "/tmp/b.txt", "out/b.txt", "x/../../b.txt", "link", "a\0", ""])
@pytest.mark.parametrize("create", [True, False])
async def test_no_write_leaves_the_root(root: Path, tmp_path: Path, path: str, create: bool) -> None:
    (tmp_path / "outside").write_text("outside")
    (root / "out").symlink_to(tmp_path)
    (root / "link").symlink_to(tmp_path / "outside")
    before = names(tmp_path)
    error = await refused(root, "fs.write", path=path, content="x", create_folders=create)
    assert error.code in {Code.PATH_NOT_ALLOWED, None}
    assert names(tmp_path) == before
    assert (tmp_path / "outside").read_text() == "outside"


async def test_a_folder_or_pipe_is_not_written_over(root: Path) -> None:
    (root / "sub").mkdir()
    os.mkfifo(root / "pipe")
    assert (await refused(root, "fs.write", path="sub", content="")).code is Code.FILE_IS_FOLDER
    assert (await refused(root, "fs.write", path="pipe", content="")).code is Code.PATH_NOT_ALLOWED
    assert (await refused(root, "fs.write", path="a.txt/b", content="")).code is Code.FOLDER_NOT_FOUND


async def test_a_link_put_in_place_of_the_target_is_replaced_not_followed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("outside")
    rename = os.rename

    def swapped(source: str, target: str, **at: int) -> None:
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside)
        rename(source, target, **at)

    monkeypatch.setattr(os, "rename", swapped)
    await call(root, "fs.write", path="a.txt", content="new")
    assert outside.read_text() == "outside"
    assert not (root / "a.txt").is_symlink()
    assert (root / "a.txt").read_text() == "new"


async def test_an_expected_digest_guards_a_write(root: Path) -> None:
    before = digest(root / "a.txt")
    for path in ("a.txt", "new.txt"):
        error = await refused(root, "fs.write", path=path, content="x", expect_sha256=sha256(b"other"))
        assert error.code is Code.FILE_CHANGED
    assert digest(root / "a.txt") == before
    assert (await call(root, "fs.write", path="a.txt", content="x", expect_sha256=before))["change"] == "replaced"
    assert (await call(root, "fs.write", path="a.txt", content="x", expect_sha256=before))["change"] == "unchanged"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, Code.DISK_FULL),
        (errno.EDQUOT, Code.DISK_FULL),
        (errno.EIO, Code.FILE_IO_FAILED),
        (errno.EROFS, Code.FILE_ACCESS_DENIED),
    ],
)
@pytest.mark.parametrize("fails", ["write", "fsync", "rename", "open"])
async def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, fails: str, number: int, code: Code
) -> None:
    original = getattr(os, fails)

    def failing(*args: Any, **more: Any) -> Any:
        if fails == "open" and not args[1] & os.O_CREAT:
            return original(*args, **more)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, fails, failing)
        error = await refused(root, "fs.write", path="a.txt", content="new")
    assert error.code is code
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert names(root) == ["a.txt"]


async def test_a_write_whose_folder_cannot_be_synced_may_or_may_not_last(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def failing(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    assert (await refused(root, "fs.write", path="a.txt", content="new")).code is Code.OUTCOME_UNKNOWN
    assert (root / "a.txt").read_text() == "new"
    assert names(root) == ["a.txt"]


async def test_content_reaches_the_disk_before_its_name_and_the_folder_after(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def synced(fd: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    def renamed(*args: Any, **more: Any) -> None:
        steps.append("rename")
        rename(*args, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    await call(root, "fs.write", path="a.txt", content="new")
    assert steps == ["file", "rename", "folder"]
    for again in (call, found):  # an earlier attempt may have died before it came to the folder
        steps.clear()
        await again(root, "fs.write", path="a.txt", content="new")
        assert steps == ["file", "folder"]
    steps.clear()
    await found(root, "fs.edit", path="a.txt", edits=[swap("old", "new")])
    assert steps == ["file", "folder"]


async def test_what_a_crashed_attempt_left_behind_is_cleared_by_the_next(root: Path) -> None:
    (root / f".remit-{call_context().idempotency_key[:32]}.tmp").write_text("half")
    await call(root, "fs.write", path="a.txt", content="whole")
    assert names(root) == ["a.txt"]
    assert (root / "a.txt").read_text() == "whole"


async def test_content_that_is_no_unicode_is_refused(root: Path) -> None:
    assert (await refused(root, "fs.write", path="a.txt", content="\ud800")).cause is Code.InvalidInput


async def test_a_write_is_found_afterwards(root: Path) -> None:
    assert isinstance(FsProvider([root]), Reconciles)
    result = await call(root, "fs.write", path="a.txt", content="new")
    assert await found(root, "fs.write", path="a.txt", content="new") == {**result, "change": "unchanged"}
    assert await found(root, "fs.write", path="a.txt", content="other") is None
    assert await found(root, "fs.write", path="none/b.txt", content="other") is None


async def test_a_reconciliation_that_may_not_look_does_not_guess(root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(ProviderError):
        await found(root, "fs.write", path="link", content="new")


# --- fs.edit


async def test_each_edit_replaces_text_that_occurs_once(root: Path) -> None:
    before = digest(root / "a.txt")
    result = await call(root, "fs.edit", path="a.txt", edits=[swap("two", "2"), swap("2\nthree", "2\n3")])
    assert (root / "a.txt").read_text() == "one\n2\n3\n"
    assert result["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3\n"
    assert not result["diff_truncated"]
    assert (result["sha256_before"], result["sha256"]) == (before, digest(root / "a.txt"))
    assert result["bytes"] == len("one\n2\n3\n")


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([swap("four", "4")], "edit 1 does not occur"),
        ([swap("one", "1"), swap("t", "T")], "edit 2 occurs more than once"),
        ([swap("one", "two"), swap("two", "x")], "edit 2 occurs more than once"),
    ],
)
async def test_an_edit_that_does_not_fit_exactly_changes_nothing(
    root: Path, edits: list[dict[str, str]], says: str
) -> None:
    error = await refused(root, "fs.edit", path="a.txt", edits=edits)
    assert error.code is Code.EDIT_NO_MATCH
    assert says in str(error)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_an_edit_says_when_only_line_ends_differ(root: Path) -> None:
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    error = await refused(root, "fs.edit", path="dos.txt", edits=[swap("one\ntwo", "x")])
    assert "CR LF" in str(error)


async def test_an_edit_leaves_every_other_byte_alone(root: Path) -> None:
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\x0c")
    await call(root, "fs.edit", path="dos.txt", edits=[swap("two", "2")])
    assert (root / "dos.txt").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n\x0c"


async def test_an_expected_digest_guards_an_edit(root: Path) -> None:
    error = await refused(root, "fs.edit", path="a.txt", edits=[swap("two", "2")], expect_sha256=sha256(b"other"))
    assert error.code is Code.FILE_CHANGED
    await call(root, "fs.edit", path="a.txt", edits=[swap("two", "2")], expect_sha256=digest(root / "a.txt"))
    assert (root / "a.txt").read_text() == "one\n2\nthree\n"


async def test_what_cannot_be_edited_is_refused_by_code(root: Path, tmp_path: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9")
    (root / "link").symlink_to(tmp_path)
    edits = [swap("x", "y")]
    assert (await refused(root, "fs.edit", path="none", edits=edits)).code is Code.FILE_NOT_FOUND
    assert (await refused(root, "fs.edit", path="latin", edits=edits)).code is Code.FILE_NOT_TEXT
    assert (await refused(root, "fs.edit", path="link", edits=edits)).code is Code.PATH_NOT_ALLOWED
    assert (await refused(root, "fs.edit", path=".", edits=edits)).code is Code.FILE_IS_FOLDER


async def test_edits_of_one_file_at_once_all_count(root: Path) -> None:
    (root / "many").write_text("".join(f"<{n}>\n" for n in range(20)))
    provider = FsProvider([root])
    await asyncio.gather(
        *(
            provider.invoke(
                "fs.edit",
                {"path": "many", "edits": [swap(f"<{n}>", f"[{n}]")]},
                call_context(idempotency_key=f"{n:064x}"),
            )
            for n in range(20)
        )
    )
    assert (root / "many").read_text() == "".join(f"[{n}]\n" for n in range(20))


async def test_an_edit_is_found_afterwards_by_the_digest_it_expected(root: Path) -> None:
    asked: dict[str, Any] = {
        "path": "a.txt",
        "edits": [swap("two", "two two"), swap("three", "3")],
        "expect_sha256": digest(root / "a.txt"),
    }
    assert await found(root, "fs.edit", **asked) is None
    result = await call(root, "fs.edit", **asked)
    assert await found(root, "fs.edit", **asked) == result


async def test_an_edit_is_found_afterwards_by_its_text(root: Path) -> None:
    asked: dict[str, Any] = {"path": "a.txt", "edits": [swap("two", "2")]}
    assert await found(root, "fs.edit", **asked) is None
    result = await call(root, "fs.edit", **asked)
    assert await found(root, "fs.edit", **asked) == result


@pytest.mark.parametrize(
    ("content", "edits", "expect"),
    [
        ("one\nTWO\n", [swap("two", "2")], None),  # neither text is there
        ("foo\nbar\n", [swap("foo", "foo\nbar")], None),  # what it finds is also what it leaves
        ("one\n", [swap("two", "")], None),  # a deletion leaves no trace
        ("one\n2\nmore\n", [swap("two", "2")], sha256(b"one\ntwo\n")),  # changed again since
    ],
)
async def test_an_edit_that_may_or_may_not_have_happened_is_not_guessed(
    root: Path, content: str, edits: list[dict[str, str]], expect: str | None
) -> None:
    (root / "a.txt").write_text(content)
    with pytest.raises(ProviderError) as error:
        await found(root, "fs.edit", path="a.txt", edits=edits, expect_sha256=expect)
    assert error.value.code is Code.OUTCOME_UNKNOWN
    (root / "a.txt").unlink()
    with pytest.raises(ProviderError) as error:
        await found(root, "fs.edit", path="a.txt", edits=edits, expect_sha256=expect)
    assert error.value.code is Code.OUTCOME_UNKNOWN


async def test_only_tools_that_write_are_reconciled(root: Path) -> None:
    with pytest.raises(ProviderError) as error:
        await found(root, "fs.read", path="a.txt")
    assert error.value.cause is Code.ToolNotFound


@pytest.mark.parametrize("path", ["remit.toml", "sub/remit.toml", "REMIT.toml", ".remit/notes.txt"])
async def test_what_decides_over_an_agent_is_not_the_agent_s_to_change(root: Path, path: str) -> None:
    assert (await refused(root, "fs.write", path=path, content="x")).code is Code.PATH_NOT_ALLOWED
    edits = [{"search": "a", "replace": "b"}]
    assert (await refused(root, "fs.edit", path=path, edits=edits)).code is Code.PATH_NOT_ALLOWED


async def test_the_record_of_an_agent_is_not_the_agent_s_to_read(root: Path) -> None:
    (root / ".remit").mkdir()
    (root / ".remit" / "journal.txt").write_text("private")
    assert (await refused(root, "fs.read", path=".remit/journal.txt")).code is Code.PATH_NOT_ALLOWED
    (root / "remit.toml").write_text("[jobs]\n")
    assert (await call(root, "fs.read", path="remit.toml"))["text"] == "[jobs]\n"
