from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.files.directory import ConfinedDirectory
from remit.files.index import refresh
from remit.threads import StopEvent
from remit_testing.providers import call_context
from tests.providers.folder.library import TASKS, paths, provider, refused, search, write


async def test_a_passage_is_found_with_its_exact_place(folder: Path, tmp_path: Path) -> None:
    found = await search(tmp_path, "how does asyncio cancel a task")
    item = found["items"][0]
    assert (item["path"], item["title"], item["heading"]) == ("asyncio/tasks.py", "Support for tasks.", "")
    text = (folder / "asyncio/tasks.py").read_text()
    assert text[item["start"] : item["end"]] == TASKS.strip()
    assert item["sha256"] == sha256(TASKS.encode())
    assert "cancel itself" in item["snippet"]
    assert found["folder"] == str(folder)
    assert found["files"] == 4
    assert found["skipped"] == {"binary": 0, "too_large": 0, "unreadable": 0}


async def test_code_is_preferred_to_the_test_that_repeats_its_words(folder: Path, tmp_path: Path) -> None:
    assert await paths(tmp_path, "cancel a task") == ["asyncio/tasks.py", "test/test_tasks.py"]


async def test_forms_of_a_word_and_words_of_the_path_match(folder: Path, tmp_path: Path) -> None:
    assert (await paths(tmp_path, "cancelling"))[0] == "asyncio/tasks.py"
    assert (await paths(tmp_path, "asyncio"))[0] == "asyncio/tasks.py"


async def test_what_the_folder_is_called_is_part_of_every_path(folder: Path, tmp_path: Path) -> None:
    found = await search(tmp_path, "asyncio", folder=str(folder / "asyncio"))
    assert [item["path"] for item in found["items"]] == ["tasks.py"]


async def test_sections_are_passages_of_their_own_if_they_are_long_enough(folder: Path, tmp_path: Path) -> None:
    write(
        folder, "long.md", f"# Guide\n\n## Eggs\n\n{'Boil the egg. ' * 40}\n\n## Trains\n\n{'Take the train. ' * 40}\n"
    )
    item = (await search(tmp_path, "train", limit=1))["items"][0]
    assert item["heading"] == "Guide > Trains"
    assert (folder / "long.md").read_text()[item["start"] :].startswith("## Trains")


async def test_of_a_page_only_what_people_read_is_searched(folder: Path, tmp_path: Path) -> None:
    [item] = (await search(tmp_path, "blue"))["items"]
    assert (item["title"], item["snippet"]) == ("Whales", "The blue whale is large.")
    assert await paths(tmp_path, "var") == []


async def test_chinese_is_found_by_the_words_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    write(folder, "cn.md", "# 任务\n\n如果任务被取消协程会收到异常。\n")
    assert await paths(tmp_path, "任务取消") == ["cn.md"]


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(", "title:x", "*", "cancel*", "^", "-", "(", "'; DROP TABLE files", "\0", "{x}", "+"]
)
async def test_no_query_acts_as_syntax(folder: Path, tmp_path: Path, query: str) -> None:
    found = await search(tmp_path, query)
    assert found["files"] == 4


async def test_a_query_without_words_finds_nothing(folder: Path, tmp_path: Path) -> None:
    assert (await search(tmp_path, "?!"))["items"] == []


async def test_the_limit_is_kept(folder: Path, tmp_path: Path) -> None:
    assert len((await search(tmp_path, "task", limit=1))["items"]) == 1


async def test_what_is_not_for_reading_is_skipped_and_counted(folder: Path, tmp_path: Path) -> None:
    write(folder, "image.png", b"\x89PNG\r\n\x1a\n\0task")
    write(folder, "latin.txt", b"caf\xe9 task")
    write(folder, "large.txt", b"task " * 400_001)
    os.close(os.open(os.fsencode(folder) + b"/caf\xe9", os.O_CREAT))
    found = await search(tmp_path, "task")
    assert found["skipped"] == {"binary": 2, "too_large": 1, "unreadable": 1}
    assert found["files"] == 4


async def test_what_was_installed_or_is_hidden_is_left_out(folder: Path, tmp_path: Path) -> None:
    for name in ("node_modules/a.js", "site-packages/a.py", "__pycache__/a.txt", ".git/a", ".venv/a.py", ".env"):
        write(folder, name, "zebra task")
    found = await search(tmp_path, "zebra")
    assert found["items"] == []
    assert found["files"] == 4


async def test_a_folder_that_is_left_out_elsewhere_can_be_searched_itself(folder: Path, tmp_path: Path) -> None:
    write(folder, "node_modules/a.js", "zebra")
    found = await search(tmp_path, "zebra", folder=str(folder / "node_modules"))
    assert [item["path"] for item in found["items"]] == ["a.js"]


async def test_links_pipes_and_what_they_lead_to_are_never_read(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.txt", "zebra")
    (folder / "file-link").symlink_to(tmp_path / "outside" / "secret.txt")
    (folder / "folder-link").symlink_to(tmp_path / "outside")
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    found = await search(tmp_path, "zebra")
    assert found["items"] == []
    assert found["files"] == 4


async def test_a_file_swapped_for_a_link_while_it_is_indexed_is_not_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "outside/secret.txt", "zebra")
    original = refresh.survey

    def swapped(*args: Any) -> Any:
        entries = original(*args)
        (folder / "guide.md").unlink()
        (folder / "guide.md").symlink_to(tmp_path / "outside" / "secret.txt")
        return entries

    monkeypatch.setattr(refresh, "survey", swapped)
    found = await search(tmp_path, "zebra")
    assert found["items"] == []
    assert found["skipped"]["unreadable"] == 1


async def test_a_file_that_vanishes_after_it_was_indexed_is_skipped_and_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await search(tmp_path, "task")
    entries = refresh.survey(ConfinedDirectory(folder), StopEvent())
    monkeypatch.setattr(refresh, "survey", lambda *_: entries)
    (folder / "asyncio/tasks.py").unlink()
    found = await search(tmp_path, "cancel task")
    assert [item["path"] for item in found["items"]] == ["test/test_tasks.py"]
    assert found["skipped"]["unreadable"] == 1


async def test_a_file_that_changed_without_a_trace_is_not_quoted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await search(tmp_path, "whale")
    write(folder, "page.html", "<title>Whales</title><p>The blue whale is tiny.</p> <script>var blue;</script>")
    found = await search(tmp_path, "whale")
    assert found["items"] == []
    assert found["skipped"]["unreadable"] == 1


@pytest.mark.parametrize("name", ["two\nlines.md", "quote'\".md", "π.md"])
async def test_a_file_with_an_odd_name_is_found(folder: Path, tmp_path: Path, name: str) -> None:
    write(folder, name, "zebra")
    assert await paths(tmp_path, "zebra") == [name]


# --- which folders


async def test_a_folder_that_is_not_one_is_refused(folder: Path, tmp_path: Path) -> None:
    one = provider(tmp_path)
    assert await refused(one, folder=str(tmp_path / "none")) is Code.FOLDER_NOT_FOUND
    assert await refused(one, folder=str(folder / "guide.md")) is Code.FOLDER_NOT_FOUND
    for name in ("a\0b", "\ud800", "~nobody-of-this-name", "x" * 300):
        assert await refused(one, folder=name) is Code.FOLDER_NOT_FOUND
    (tmp_path / "circle").symlink_to("circle")
    assert await refused(one, folder=str(tmp_path / "circle")) is Code.FOLDER_NOT_FOUND


async def test_a_folder_without_text_is_empty(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    assert await refused(provider(tmp_path), folder=str(tmp_path / "bare")) is Code.FOLDER_EMPTY
    write(tmp_path / "bare", "image", b"\0")
    assert await refused(provider(tmp_path), folder=str(tmp_path / "bare")) is Code.FOLDER_EMPTY


async def test_a_folder_whose_real_name_is_not_utf8_is_searched(folder: Path, tmp_path: Path) -> None:
    os.rename(folder, os.fsencode(tmp_path) + b"/caf\xe9")  # noqa: PTH104 - pathlib takes no bytes
    (tmp_path / "library").symlink_to(os.fsdecode(b"caf\xe9"))
    found = await search(tmp_path, "cancel task")
    assert found["folder"] == f"{tmp_path}/caf\\xe9"
    assert len(found["items"]) == 2


async def test_only_folders_below_the_roots_are_searched(folder: Path, tmp_path: Path) -> None:
    one = provider(tmp_path, roots=[folder])
    found = await one.invoke("folder.search", {"folder": str(folder / "asyncio"), "query": "task"}, call_context())
    assert found.value["files"] == 1
    assert await refused(one, folder=str(tmp_path)) is Code.PATH_NOT_ALLOWED
    assert await refused(one, folder=str(folder / "..")) is Code.PATH_NOT_ALLOWED
    (folder / "way-out").symlink_to(tmp_path)
    assert await refused(one, folder=str(folder / "way-out")) is Code.PATH_NOT_ALLOWED


async def test_a_folder_swapped_for_a_link_out_of_the_roots_is_not_searched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "outside/secret.txt", "zebra")
    original = Path.resolve

    def swapped(self: Path, *, strict: bool = False) -> Path:
        found = original(self, strict=strict)
        if self.name == "asyncio":
            self.rename(self.with_name("moved"))
            self.symlink_to(tmp_path / "outside")
        return found

    one = provider(tmp_path, roots=[folder])
    monkeypatch.setattr(Path, "resolve", swapped)
    assert await refused(one, folder=str(folder / "asyncio")) is Code.PATH_NOT_ALLOWED


async def test_a_folder_with_too_many_files_is_searched_in_part_and_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not (await search(tmp_path, "task"))["truncated"]
    monkeypatch.setattr(refresh, "FILES_MOST", 3)
    found = await search(tmp_path, "task")
    assert (found["files"], found["truncated"]) == (3, True)


async def test_a_relative_folder_is_below_the_base(folder: Path, tmp_path: Path) -> None:
    one = provider(tmp_path, base=tmp_path)
    found = await one.invoke("folder.search", {"folder": "library", "query": "task"}, call_context())
    assert found.value["files"] == 4
