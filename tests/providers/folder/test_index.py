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
from remit.files.index import refresh
from remit_testing.providers import call_context
from tests.patience import PATIENCE_S
from tests.providers.folder.library import OLD, everything, index_of, paths, provider, reads, search, write


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


@pytest.mark.slow
async def test_several_processes_share_one_index(folder: Path, tmp_path: Path) -> None:
    for n in range(200):
        write(folder, f"more/{n}.md", f"# Note {n}\n\nA task that nobody may cancel.\n")
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [context.Process(target=search_in_process, args=(tmp_path, answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = await asyncio.gather(*(asyncio.to_thread(answers.get, timeout=PATIENCE_S) for _ in workers))
    for worker in workers:
        worker.join(PATIENCE_S)
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

    from remit.files.index.store import IndexStore  # noqa: PLC0415 - in a process of its own

    def full(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(IndexStore, "add", full)
    with pytest.raises(ProviderError) as error:
        await search(tmp_path, "task")
    assert error.value.code is Code.DISK_FULL


async def test_a_very_deep_folder_is_searched_as_far_as_paths_may_go(folder: Path, tmp_path: Path) -> None:
    write(folder, "/".join(["d"] * 60) + "/near.md", "zebra")
    write(folder, "/".join(["d"] * 80) + "/far.md", "zebra")
    assert [path[-7:] for path in await paths(tmp_path, "zebra")] == ["near.md"]
