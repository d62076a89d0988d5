"""A journal that is copied is the same journal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.copy import Copied, copy
from remit.journal.event import Blob, HeadPatch, HeadQuery
from remit.journal.journal import PAGE, Journal
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, due, head_of, holder, job, note, noted, opened, refused
from tests.journal.storages import SqliteStorage


@pytest.fixture
def source(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "source.db")


@pytest.fixture
def target(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "target.db")


async def fill(journal: Journal, *, streams: int = 3) -> None:
    writers = list[StreamWriter]()
    for number in range(streams):
        patch = due(1_000 + number, priority=number, title=f"job {number} é", state="waiting")
        patch = msgspec.structs.replace(patch, labels={"n": str(number)})
        writers.append(await job(journal, f"job/{number}", patch))
        blobs = tuple(
            Blob(sha256(text), text, until) for text, until in ((b"%d" % number, None), (b"e%d" % number, 2**52))
        )
        await journal.append(writers[-1], note(2), note(3), synced=True, blobs=blobs)
    await journal.append(
        writers[-1], note(4), synced=True, patch=HeadPatch(state="done", closed=True, due_at=None, route="r")
    )


async def contents(journal: Journal) -> list[object]:
    """Everything but what belongs to workers."""
    found: list[object] = []
    for head in await journal.heads(HeadQuery()):
        fields = (head.stream, head.kind, head.state, head.seq, head.hash, head.due_at, head.priority, head.closed)
        found += [fields, head.title, head.labels, head.created_at, head.updated_at, head.route]
        found += await journal.read(head.stream)
    after = ""
    while page := await journal.blobs(after):
        found += page
        after = page[-1].digest
    return found


async def test_a_copy_holds_the_same(source: Storage, target: Storage) -> None:
    clock = ManualClock()
    async with opened(source, clock) as original, opened(target) as copied:
        await fill(original)
        clock.advance(5)
        await original.append(await writer_of(original, "job/0"), note(4), synced=True)
        said: list[tuple[str, int, int]] = []
        assert await copy(original, copied, lambda *progress: said.append(progress)) == Copied(
            streams=3, events=11, blobs=6, added=11
        )
        assert await contents(copied) == await contents(original)
        assert said[0] == ("copy", 0, 3)
        assert said[-1] == ("prove", 3, 3)


async def writer_of(journal: Journal, stream: str) -> StreamWriter:
    return journal.writer(stream, "job", await head_of(journal, stream))


async def test_a_copy_that_was_broken_off_goes_on(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original, streams=6)

        class BrokenOffError(Exception):
            """In the middle."""

        def break_off(_what: str, done: int, _all: int) -> None:
            if done == 3:
                raise BrokenOffError

        with pytest.raises(BrokenOffError):
            await copy(original, copied, break_off)
        assert (await copy(original, copied)).added == 10
        assert (await copy(original, copied)).added == 0
        assert await contents(copied) == await contents(original)


async def test_what_is_new_in_the_source_is_added(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original)
        await copy(original, copied)
        writer = await writer_of(original, "job/1")
        await original.append(writer, note(4), synced=True, patch=HeadPatch(state="failed"))
        assert (await copy(original, copied)).added == 1
        assert await contents(copied) == await contents(original)


async def test_a_head_that_was_left_behind_is_mended(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original)
        await copy(original, copied)
        writer = await writer_of(original, "job/1")
        await original.append(writer, synced=True, patch=HeadPatch(state="failed"))
        assert (await copy(original, copied)).added == 0
        assert (await head_of(copied, "job/1")).state == "failed"


async def test_long_streams_are_copied_page_by_page(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        writer = await job(original, "job/long")
        for number in range(PAGE + 5):
            await original.append(writer, note(number), synced=False)
        assert (await copy(original, copied)).events == PAGE + 6
        assert await contents(copied) == await contents(original)


@pytest.mark.parametrize("length", [1, 3], ids=["shorter", "as long"])
async def test_another_history_in_the_target_is_left_alone(source: Storage, target: Storage, length: int) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original)
        ended = HeadPatch(state="done", closed=True)
        await copied.create("job/1", "job", *noted(*range(10, 10 + length)), patch=ended)
        before = await contents(copied)
        with refused(Code.APPEND_CONFLICT):
            await copy(original, copied)
        assert await contents(copied) == before


async def test_a_target_that_went_on_is_left_alone(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original)
        await copy(original, copied)
        writer = await writer_of(copied, "job/1")
        await copied.append(writer, note(4), synced=True, patch=HeadPatch(state="done", closed=True, due_at=None))
        before = await contents(copied)
        with refused(Code.APPEND_CONFLICT):
            await copy(original, copied)
        assert await contents(copied) == before


async def test_nothing_is_copied_while_somebody_works(source: Storage, target: Storage) -> None:
    clock = ManualClock()
    async with opened(source, clock) as original, opened(target) as copied:
        await fill(original)
        await holder(original, "job/0")
        with pytest.raises(JournalError, match="job/0") as error:
            await copy(original, copied)
        assert error.value.code is Code.JOURNAL_LOCKED
        assert await copied.heads(HeadQuery()) == []
        clock.advance(31)
        assert (await copy(original, copied)).streams == 3


async def test_what_was_woken_is_looked_at_where_it_was_copied_to(source: Storage, target: Storage) -> None:
    async with opened(source) as journal, opened(target) as other:
        for stream in ("job/called", "job/left"):
            await job(journal, stream, due(None, state="waiting"))
        await journal.wake("job/called")
        await copy(journal, other)
        assert [(head.stream, head.wakes > 0, head.due_at is not None) for head in await other.heads(HeadQuery())] == [
            ("job/left", False, False),
            ("job/called", True, True),
        ]
