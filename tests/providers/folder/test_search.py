from __future__ import annotations

import asyncio
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.folder import FolderSearchProvider, refresh
from remit.providers.folder.store import Index
from remit.testing.providers import call_context
from remit.tools.blocking import Stop
from remit.tools.rooted import Rooted

OLD = 1_600_000_000_000_000_000

TASKS = '''"""Support for tasks."""


class Task:
    """A coroutine that runs beside others."""

    def cancel(self, msg=None):
        """Request that this task cancel itself.

        The coroutine then has a chance to clean up.
        """
        return self._cancel(msg)
'''


def write(folder: Path, name: str, content: str | bytes) -> None:
    """A file that was there for long, so that the index believes its modification time."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(OLD, OLD))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    write(library, "asyncio/tasks.py", TASKS)
    write(library, "test/test_tasks.py", TASKS.replace("Request", "Test a request"))
    write(library, "guide.md", "# Guide\n\n## Cooking\n\nHow to boil an egg.\n\n## Travel\n\nHow to take a train.\n")
    write(library, "page.html", "<title>Whales</title><p>The blue whale is large.</p><script>var blue;</script>")
    return library


def provider(tmp_path: Path, **given: Any) -> FolderSearchProvider:
    return FolderSearchProvider(tmp_path / "index", **given)


async def search(tmp_path: Path, query: str, **more: Any) -> Any:
    args = {"folder": str(tmp_path / "library"), "query": query, **more}
    return (await provider(tmp_path).invoke("folder.search", args, call_context())).value


async def paths(tmp_path: Path, query: str) -> list[str]:
    return [item["path"] for item in (await search(tmp_path, query))["items"]]


async def refused(one: FolderSearchProvider, **args: Any) -> Code | None:
    with pytest.raises(ProviderError) as error:
        await one.invoke("folder.search", {"query": "x", **args}, call_context())
    return error.value.code


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def index_of(folder: Path) -> Path:
    """The index file that searches of this folder use."""
    return Index(folder.parent / "index", folder.resolve()).path


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read from now on."""
    seen: list[str] = []
    original = Rooted.read

    def noted(self: Rooted, path: str, cap: int) -> Any:
        seen.append(path)
        return original(self, path, cap)

    monkeypatch.setattr(Rooted, "read", noted)
    return seen


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
    entries = refresh.survey(Rooted(folder), Stop())
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


# --- the index


async def test_nothing_is_written_into_the_folder(folder: Path, tmp_path: Path) -> None:
    before = everything(folder)
    await search(tmp_path, "task")
    assert everything(folder) == before


async def test_only_what_changed_is_read_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await search(tmp_path, "task")
    seen = reads(monkeypatch)
    await search(tmp_path, "no such word")
    assert seen == []
    write(folder, "guide.md", "# Guide\n\nzebra crossing\n")
    write(folder, "new.md", "zebra in the zoo\n")
    (folder / "page.html").unlink()
    assert sorted(await paths(tmp_path, "zebra")) == ["guide.md", "new.md"]
    assert sorted(set(seen)) == ["guide.md", "new.md"]
    assert await paths(tmp_path, "whale") == []
    assert await paths(tmp_path, "egg") == []


async def test_a_file_changed_just_now_is_looked_at_again(folder: Path, tmp_path: Path) -> None:
    fresh = folder / "fresh.md"
    fresh.write_text("zebra one")
    status = fresh.stat()
    assert await paths(tmp_path, "zebra") == ["fresh.md"]
    fresh.write_text("hippo one")
    os.utime(fresh, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert await paths(tmp_path, "zebra") == []
    assert await paths(tmp_path, "hippo") == ["fresh.md"]


async def test_a_file_that_was_only_touched_keeps_its_passages(folder: Path, tmp_path: Path) -> None:
    before = await search(tmp_path, "task")
    os.utime(folder / "asyncio/tasks.py", ns=(OLD + 5, OLD + 5))
    assert await search(tmp_path, "task") == before


def damage_nothing(index: Path) -> None:
    index.unlink()


def damage_header(index: Path) -> None:
    index.write_bytes(b"not a database" * 100)


def damage_middle(index: Path) -> None:
    data = bytearray(index.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    index.write_bytes(data)


def damage_length(index: Path) -> None:
    os.truncate(index, 5_000)


def damage_version(index: Path) -> None:
    data = bytearray(index.read_bytes())
    data[60:64] = (99).to_bytes(4, "big")  # user_version (SQLite file format, section 1.3)
    index.write_bytes(data)


@pytest.mark.parametrize("damage", [damage_nothing, damage_header, damage_middle, damage_length, damage_version])
async def test_a_damaged_index_is_made_anew(folder: Path, tmp_path: Path, damage: Any) -> None:
    before = await search(tmp_path, "cancel task")
    damage(index_of(folder))
    assert await search(tmp_path, "cancel task") == before


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE files SET path = '../outside/secret.txt' WHERE path = 'guide.md'",
        "UPDATE passages SET start = 0, end = 1000000",
        "UPDATE passages SET start = -5",
        "UPDATE passages SET start = 'x'",
        "UPDATE files SET sha256 = 'sha256:0' WHERE path = 'asyncio/tasks.py'",
        "UPDATE files SET size = x'00'",
        "DROP TABLE passages",
    ],
)
async def test_a_tampered_index_is_not_believed(folder: Path, tmp_path: Path, tampering: str) -> None:
    import apsw  # noqa: PLC0415 - only here

    write(tmp_path, "outside/secret.txt", "egg secret task")
    await search(tmp_path, "task")
    db = apsw.Connection(str(index_of(folder)))
    db.execute(tampering)
    db.close()
    found = await search(tmp_path, "egg cancel task")
    for item in found["items"]:
        data = (folder / item["path"]).read_bytes()
        assert item["sha256"] == sha256(data)
        assert 0 <= item["start"] < item["end"] <= len(data.decode())
        assert "secret" not in item["snippet"]


async def test_an_index_that_cannot_be_written_is_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file")
    with pytest.raises(ProviderError, match="writable") as error:
        await search(tmp_path, "task")
    assert error.value.code is Code.FILE_ACCESS_DENIED


async def test_searches_at_once_all_find_the_same(folder: Path, tmp_path: Path) -> None:
    results = await asyncio.gather(*(search(tmp_path, "cancel task") for _ in range(8)))
    assert all(result == results[0] for result in results)
    assert results[0]["items"]


def search_in_process(tmp_path: Path, answers: Any) -> None:
    answers.put(asyncio.run(search(tmp_path, "cancel task")))


async def test_several_processes_share_one_index(folder: Path, tmp_path: Path) -> None:
    for n in range(200):
        write(folder, f"more/{n}.md", f"# Note {n}\n\nA task that nobody may cancel.\n")
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [context.Process(target=search_in_process, args=(tmp_path, answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = await asyncio.gather(*(asyncio.to_thread(answers.get, timeout=50) for _ in workers))
    for worker in workers:
        worker.join(10)
    assert all(result == found[0] for result in found)
    assert found[0]["files"] == 204


async def test_a_cancelled_search_keeps_what_it_has_indexed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "_BATCH", 1)
    first = asyncio.Event()
    ctx = call_context(progress=lambda *_: first.set())
    args = {"folder": str(folder), "query": "task"}
    call = asyncio.ensure_future(provider(tmp_path).invoke("folder.search", args, ctx))
    await first.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    seen = reads(monkeypatch)
    assert (await search(tmp_path, "no such word"))["files"] == 4
    assert len(seen) < 4


async def test_progress_is_told_in_files(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[float, float | None]] = []
    ctx = call_context(progress=lambda done, total, _message: told.append((done, total)))
    await provider(tmp_path).invoke("folder.search", {"folder": str(folder), "query": "task"}, ctx)
    assert told == [(4, 4)]


async def test_a_full_disk_is_reported_as_one(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import apsw  # noqa: PLC0415 - only here

    from remit.providers.folder.store import Store  # noqa: PLC0415

    def full(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(ProviderError) as error:
        await search(tmp_path, "task")
    assert error.value.code is Code.DISK_FULL


async def test_a_very_deep_folder_is_searched_as_far_as_paths_may_go(folder: Path, tmp_path: Path) -> None:
    write(folder, "/".join(["d"] * 60) + "/near.md", "zebra")
    write(folder, "/".join(["d"] * 80) + "/far.md", "zebra")
    assert [path[-7:] for path in await paths(tmp_path, "zebra")] == ["near.md"]
