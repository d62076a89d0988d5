from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.replacement import Roots
from remit.providers.fs import provider as reading
from remit.providers.fs.provider import FsProvider
from remit.providers.fs.shapes import ListArgs, SearchArgs
from remit.threads import StopEvent, StoppedError
from remit_testing.providers import call_context
from tests.patience import PATIENCE_S


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("# Title\ncancel a task\n")
    (folder / "b.py").write_text("def Cancel():\r\n    return task\n")
    return folder


async def call(root: Path | list[Path], tool: str, **args: Any) -> Any:
    provider = FsProvider(root if isinstance(root, list) else [root], max_read_bytes=10_000)
    return (await provider.invoke(tool, args, call_context())).value


async def refused(root: Path | list[Path], tool: str, **args: Any) -> ProviderError:
    with pytest.raises(ProviderError) as error:
        await call(root, tool, **args)
    return error.value


async def test_a_text_file_is_read_with_its_digest(root: Path) -> None:
    data = (root / "docs" / "a.md").read_bytes()
    assert await call(root, "fs.read", path="docs/a.md") == {
        "path": "docs/a.md",
        "text": "# Title\ncancel a task\n",
        "bytes": len(data),
        "sha256": sha256(data),
    }


async def test_binary_invalid_utf8_and_large_files_are_refused_by_code(root: Path) -> None:
    (root / "image").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (root / "latin").write_bytes("café".encode("latin-1"))
    (root / "large").write_text("x" * 10_001)
    assert (await refused(root, "fs.read", path="image")).code is Code.FILE_NOT_TEXT
    assert (await refused(root, "fs.read", path="latin")).code is Code.FILE_NOT_TEXT
    assert (await refused(root, "fs.read", path="large")).code is Code.FILE_TOO_LARGE


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "docs/../../secret", "out/secret", "secret-link", "pipe", "a\0b"]
)
async def test_no_reading_tool_leaves_the_root(root: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "out").symlink_to(tmp_path)
    (root / "secret-link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    assert (await refused(root, "fs.read", path=path)).code is Code.PATH_NOT_ALLOWED


@pytest.mark.parametrize("path", ["..", "/etc", "docs/../..", "out"])
async def test_no_listing_and_no_search_leaves_the_root(root: Path, tmp_path: Path, path: str) -> None:
    (root / "out").symlink_to(tmp_path)
    for several in (root, [root, tmp_path / "other"]):
        assert (await refused(several, "fs.list", path=path)).code is Code.PATH_NOT_ALLOWED
        assert (await refused(several, "fs.search", path=path, query="x")).code is Code.PATH_NOT_ALLOWED


async def test_a_folder_is_listed_by_name(root: Path) -> None:
    os.utime(root / "b.py", ns=(0, 1_700_000_000_000_000_000))
    found = await call(root, "fs.list")
    assert [(item["path"], item["kind"]) for item in found["items"]] == [("b.py", "file"), ("docs", "folder")]
    assert found["items"][0]["bytes"] == (root / "b.py").stat().st_size
    assert found["items"][0]["modified"] == 1_700_000_000_000_000
    assert not found["truncated"]


async def test_a_listing_goes_deeper_on_request_and_ends_at_its_limit(root: Path) -> None:
    found = await call(root, "fs.list", recursive=True)
    assert [item["path"] for item in found["items"]] == ["b.py", "docs", "docs/a.md"]
    found = await call(root, "fs.list", recursive=True, limit=2)
    assert [item["path"] for item in found["items"]] == ["b.py", "docs"]
    assert found["truncated"]


async def test_an_empty_folder_lists_nothing(root: Path) -> None:
    (root / "empty").mkdir()
    assert await call(root, "fs.list", path="empty") == {"items": [], "truncated": False}


async def test_a_listing_gives_odd_names_in_a_form_json_can_carry(root: Path) -> None:
    (root / "two\nlines").write_text("")
    os.close(os.open(os.fsencode(root) + b"/caf\xe9", os.O_CREAT))
    kinds = {item["path"]: item["kind"] for item in (await call(root, "fs.list"))["items"]}
    assert kinds["two\nlines"] == "file"
    assert kinds["caf\\xe9"] == "unnamed"


async def test_a_search_finds_lines_with_their_numbers(root: Path) -> None:
    found = await call(root, "fs.search", query="cancel")
    assert found["matches"] == [{"path": "docs/a.md", "line": 2, "text": "cancel a task"}]
    assert found["files"] == 2


async def test_a_search_can_ignore_case_and_begin_below(root: Path) -> None:
    found = await call(root, "fs.search", query="CANCEL", ignore_case=True)
    assert [(match["path"], match["line"]) for match in found["matches"]] == [("b.py", 1), ("docs/a.md", 2)]
    assert (await call(root, "fs.search", query="cancel", path="docs"))["files"] == 1


async def test_a_pattern_is_matched_line_by_line(root: Path) -> None:
    found = await call(root, "fs.search", query=r"^\s+return \w+", regex=True)
    assert found["matches"] == [{"path": "b.py", "line": 2, "text": "    return task"}]
    found = await call(root, "fs.search", query=r"^DEF", regex=True, ignore_case=True)
    assert found["matches"] == [{"path": "b.py", "line": 1, "text": "def Cancel():"}]


async def test_signs_of_a_pattern_mean_themselves_without_regex(root: Path) -> None:
    assert len((await call(root, "fs.search", query="():"))["matches"]) == 1
    assert (await call(root, "fs.search", query="c.ncel"))["matches"] == []


@pytest.mark.parametrize("query", ["(", "a(?=b)", r"(a)\1"])
async def test_a_pattern_that_cannot_run_is_refused(root: Path, query: str) -> None:
    assert (await refused(root, "fs.search", query=query, regex=True)).cause is Code.InvalidInput


async def test_no_pattern_can_hold_the_process(root: Path) -> None:
    (root / "long").write_text("a" * 9_000 + "!")
    async with asyncio.timeout(PATIENCE_S):
        assert (await call(root, "fs.search", query="(a+)+$", regex=True))["matches"] == []


async def test_a_search_ends_at_its_limit_and_says_so(root: Path) -> None:
    (root / "many").write_text("x\n" * 5)
    found = await call(root, "fs.search", query="x", limit=5)
    assert (len(found["matches"]), found["truncated"]) == (5, False)
    found = await call(root, "fs.search", query="x", limit=4)
    assert (len(found["matches"]), found["truncated"]) == (4, True)


async def test_a_search_counts_what_it_cannot_read_and_cuts_long_lines(root: Path) -> None:
    (root / "image").write_bytes(b"cancel\0")
    (root / "large").write_text("cancel" * 2_000)
    (root / "line").write_text("cancel" + "x" * 900)
    found = await call(root, "fs.search", query="cancel")
    assert found["skipped"] == 2
    assert [len(match["text"]) for match in found["matches"]] == [13, reading.LINE_MOST]


async def test_a_search_stays_out_of_what_was_installed_but_not_if_it_begins_there(root: Path) -> None:
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").write_text("unique word")
    assert (await call(root, "fs.search", query="unique"))["matches"] == []
    assert len((await call(root, "fs.search", query="unique", path="node_modules"))["matches"]) == 1


async def test_a_search_looks_at_so_many_files_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.bin").write_bytes(b"\0")
    monkeypatch.setattr(reading, "FILES_MOST", 2)
    found = await call(root, "fs.search", query="cancel")
    assert (found["files"], found["skipped"], found["truncated"]) == (1, 1, True)


def test_a_listing_and_a_search_end_when_nobody_waits_for_them(root: Path) -> None:
    tools, stop = reading.FileReading(Roots([root]), 1_000), StopEvent()
    stop.set()
    with pytest.raises(StoppedError):
        tools.search(SearchArgs("x"), stop)
    with pytest.raises(StoppedError):
        tools.list(ListArgs(), stop)


async def test_with_several_roots_a_path_begins_with_the_name_of_its_root(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "x" / "root"
    other.mkdir(parents=True)
    (other / "c.txt").write_text("cancel there")
    roots = [root, other]
    assert [item["path"] for item in (await call(roots, "fs.list"))["items"]] == ["root", "root-2"]
    assert (await call(roots, "fs.read", path="root-2/c.txt"))["text"] == "cancel there"
    assert (await call(roots, "fs.list", path="root-2"))["items"][0]["path"] == "root-2/c.txt"
    found = await call(roots, "fs.search", query="cancel")
    assert [match["path"] for match in found["matches"]] == ["root/docs/a.md", "root-2/c.txt"]
    everything = await call(roots, "fs.list", recursive=True)
    assert "root-2/c.txt" in [item["path"] for item in everything["items"]]


async def test_roots_of_one_name_are_numbered(tmp_path: Path) -> None:
    roots = [tmp_path / name / "docs" for name in "abc"] + [tmp_path / "data"]
    for folder in roots:
        folder.mkdir(parents=True)
    listed = await call(roots, "fs.list")
    assert [item["path"] for item in listed["items"]] == ["data", "docs", "docs-2", "docs-3"]
    assert {item["kind"] for item in listed["items"]} == {"folder"}


async def test_with_several_roots_a_path_without_one_is_refused_with_the_choice(root: Path, tmp_path: Path) -> None:
    error = await refused([root, tmp_path], "fs.read", path="b.py")
    assert error.code is Code.PATH_NOT_ALLOWED
    assert "root" in str(error)


async def test_a_root_named_twice_is_one_root(root: Path) -> None:
    assert (await call([root, root / "docs" / ".."], "fs.read", path="b.py"))["path"] == "b.py"


async def test_no_roots_means_no_files() -> None:
    assert (await refused([], "fs.read", path="etc/passwd")).code is Code.PATH_NOT_ALLOWED
    assert (await call([], "fs.list"))["items"] == []


async def test_a_root_that_is_gone_is_reported(tmp_path: Path) -> None:
    assert (await refused(tmp_path / "gone", "fs.list")).code is Code.FOLDER_NOT_FOUND


async def test_arguments_of_a_wrong_type_are_refused_even_without_a_schema_gate(root: Path) -> None:
    assert (await refused(root, "fs.read", path=1)).cause is Code.InvalidInput
    assert (await refused(root, "fs.read")).cause is Code.InvalidInput


@pytest.mark.parametrize("where", [{}, {"path": ""}, {"path": "."}])
async def test_a_folder_that_holds_a_journal_is_searched_and_listed_without_it(
    root: Path, where: dict[str, str]
) -> None:
    (root / ".remit").mkdir()
    (root / ".remit" / "notes.txt").write_text("cancel everything\n")
    found = await call(root, "fs.search", query="cancel", **where)
    assert [match["path"] for match in found["matches"]] == ["docs/a.md"]
    listed = await call(root, "fs.list", recursive=True, **where)
    assert [item["path"] for item in listed["items"]] == ["b.py", "docs", "docs/a.md"]
