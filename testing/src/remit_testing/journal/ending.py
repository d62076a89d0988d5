"""Order and end: what was submitted is written, in order; after the end everything is refused."""

from __future__ import annotations

import asyncio

from remit.codes import Code
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import TimeRecorded
from remit_testing.journal.storage import Storage, head_of, job, note, numbers, opened, refused, terms


async def check_reading_sees_what_was_submitted(storage: Storage) -> None:
    """Every read of this process finds what it submitted before, flushed or not: events, patches, wake-ups, blobs."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        for number in range(2, 20):
            await journal.append(writer, note(number), synced=False)
            assert (await head_of(journal)).seq == number
            await journal.append(writer, synced=False, patch=HeadPatch(state=str(number), due_at=number))
            assert await numbers(journal) == list(range(1, number + 1))
            assert await journal.next_due("job") == number
            await journal.append(writer, synced=False, patch=HeadPatch(state="x"))
            assert len(await journal.heads(HeadQuery(states=("x",)))) == 1


async def check_a_claim_sees_what_was_submitted(storage: Storage) -> None:
    """A stream made due a moment ago, without waiting for it, is claimed."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a", HeadPatch(due_at=None))
        await journal.append(writer, synced=False, patch=HeadPatch(due_at=0, state="late"))
        (lease,) = await journal.claim(terms())
        assert lease.previous_state == "late"


async def check_drained_waits_for_what_was_queued(storage: Storage) -> None:
    """A refusal among what was queued is known when it returns."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        rival = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(writer, note(2), synced=False)
        await journal.append(rival, note(2), synced=False)
        await journal.drained()
        assert writer.failure is None
        assert rival.failure is not None
        assert rival.failure.code is Code.APPEND_CONFLICT


async def check_a_cancelled_append_happens_all_the_same(storage: Storage) -> None:
    """Cancelling the wait takes nothing back, and the writer goes on where it is."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        task = asyncio.create_task(journal.append(writer, note(2), synced=True))
        await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await journal.append(writer, note(3), synced=True)
        assert await journal.verify("job/a") == 3


async def check_a_payload_that_cannot_be_encoded_changes_nothing(storage: Storage) -> None:
    """It raises before anything has its place; the writer goes on."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        bad = TimeRecorded(step="2", value=object())  # type: ignore[arg-type] # on purpose
        try:
            await journal.append(writer, note(2), bad, synced=True)
        except TypeError:
            pass
        else:
            raise AssertionError("it was recorded")
        await journal.append(writer, note(2), synced=True)
        assert await journal.verify("job/a") == 2


async def check_closing_settles_what_was_submitted(storage: Storage) -> None:
    """A waiter for an append is answered, with success; closing twice is closing."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        appends = [asyncio.create_task(journal.append(writer, note(number), synced=True)) for number in range(2, 50)]
        await asyncio.sleep(0)  # noqa: TID251 - lets them begin, and waits for nothing
        await asyncio.gather(journal.close(), journal.close())
        await journal.close()
        await asyncio.gather(*appends)
        assert writer.failure is None


async def check_after_the_end_everything_is_refused(storage: Storage) -> None:
    """With JOURNAL_CLOSED: appends of either kind, reads, claims, and the wait for news."""
    async with opened(storage) as journal:
        writer, other = await job(journal, "job/a"), await job(journal, "job/b")
        await journal.close()
        for use in (
            lambda: journal.append(writer, note(2), synced=True),
            lambda: journal.append(other, note(2), synced=False),
            lambda: journal.create("job/c", "job", note(1)),
            lambda: journal.wake("job/a"),
            journal.drained,
            lambda: journal.head("job/a"),
            lambda: journal.heads(HeadQuery()),
            lambda: journal.read("job/a"),
            lambda: journal.verify("job/a"),
            lambda: journal.blob("sha256:0"),
            lambda: journal.claim(terms()),
            lambda: journal.acquire("job/a", terms()),
            lambda: journal.renew([("job/a", 1)], 1),
            lambda: journal.wakes(["job/a"]),
            lambda: journal.next_due("job"),
            lambda: journal.leases("job"),
            lambda: journal.changed(0),
            lambda: journal.heads_changed(0),
            journal.blobs,
            journal.prune,
            lambda: journal.put_blobs(()),
            lambda: journal.changed(10**9),
        ):
            with refused(Code.JOURNAL_CLOSED):
                await use()


async def check_the_storage_finds_itself_in_order(storage: Storage) -> None:
    """Its own check reports nothing about a journal that was merely used."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        await journal.append(writer, note(2), synced=False)
        assert await journal.integrity() == []
        assert journal.url
