"""The chain: what is recorded can be shown to be unchanged, and what is not as its writer left it is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.journal.blobs import BlobRef, pack
from remit.journal.event import Append, Blob, Event, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import JobCompleted
from remit.journal.writer import Draft, StreamWriter
from remit_testing.journal.storage import Storage, head_of, job, note, noted, opened, refused

Change = Callable[[Event], Event]


def _with(**changes: Any) -> Change:
    return lambda event: msgspec.structs.replace(event, **changes)


CHANGES: dict[str, Change] = {
    "payload": lambda event: msgspec.structs.replace(event, data=event.data.replace(b"2", b"3")),
    "kind": _with(kind="timer_fired"),
    "time": lambda event: msgspec.structs.replace(event, at=event.at + 1),
    "hash": _with(hash=b"\0" * 32),
}


async def check_an_untouched_stream_verifies(storage: Storage) -> None:
    """To the number of its events, and to its head; a stream that is not there is an error."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        await journal.append(writer, *noted(2, 3), synced=False)
        assert await journal.verify("job/a") == 3
        assert (await head_of(journal)).seq == 3
        with refused(Code.STREAM_NOT_FOUND):
            await journal.verify("job/none")


async def check_a_changed_event_is_found(storage: Storage) -> None:
    """Payload, kind, time or hash: whatever of a recorded event is not what its writer chained, it is named."""
    async with opened(storage) as journal:
        for name, change in CHANGES.items():
            stream = f"job/{name}"
            await job(journal, stream)
            await _forge(journal, stream, change)
            after = StreamWriter(
                stream, "job", journal.clock, await head_of(journal, stream)
            )  # of someone without a key
            await journal.append(after, note(3), synced=True)
            assert "event 2" in await _broken(journal, stream), name


async def check_a_changed_tail_is_found(storage: Storage) -> None:
    """Also where nothing follows that it could be compared with: the head holds its chain value."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        await _forge(journal, "job/a", CHANGES["payload"])
        assert "event 2" in await _broken(journal, "job/a")


async def check_a_changed_value_is_found(storage: Storage) -> None:
    """A value that is kept by digest is compared with it, when it is read and when its stream is verified."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        packed = pack(b'"' + b"x" * 10_000 + b'"')
        assert isinstance(packed.ref, BlobRef)
        forged = Blob(packed.ref.digest, b'"' + b"y" * 10_000 + b'"')
        await journal.append(writer, JobCompleted(result_blob=packed.ref), synced=True, blobs=(forged,))
        await _broken(journal, "job/a")
        with refused(Code.CHAIN_BROKEN):
            await journal.value(packed.inline, packed.ref)


async def check_a_lost_value_is_found(storage: Storage) -> None:
    """A value whose bytes are gone is a problem of its stream."""
    async with opened(storage) as journal:
        packed = pack(b'"' + b"x" * 10_000 + b'"')
        await journal.create("job/a", "job", JobCompleted(result_blob=packed.ref))
        assert packed.blobs[0].digest in await _broken(journal, "job/a", Code.BLOB_MISSING)


class _Forger(StreamWriter):
    """Records events that are not the ones it chained, as someone would who changes them later."""

    __slots__ = ("_change",)

    def __init__(self, journal: Journal, head: StreamHead, change: Change) -> None:
        super().__init__(head.stream, head.kind, journal.clock, head)
        self._change = change

    def chain(self, draft: Draft) -> Append:
        append = super().chain(draft)
        return msgspec.structs.replace(append, events=tuple(map(self._change, append.events)))


async def _forge(journal: Journal, stream: str, change: Change) -> None:
    """Append event 2, changed."""
    await journal.append(_Forger(journal, await head_of(journal, stream), change), note(2), synced=True)


async def _broken(journal: Journal, stream: str, code: Code = Code.CHAIN_BROKEN) -> str:
    """Return what verification says about a stream that has to be broken."""
    message = ""
    with refused(code):
        try:
            await journal.verify(stream)
        except ChainBrokenError as error:
            message = error.message
            raise
    return message
