"""Streams with a subject: where their values are, and what is left once they were erased."""

from __future__ import annotations

from remit.codes import Code
from remit.journal.blobs import BlobRef, pack
from remit.journal.erasure import Erased, erase
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import EvidenceAttached, JobCompleted, JobCreated, Payload, SignalSent, decode
from remit_testing.journal.storage import Storage, head_of, opened, refused

SMALL, LARGE = b'"secret"', b'"' + b"secret" * 2_000 + b'"'
_ABOUT = HeadPatch(state="", subject="customer-7")


async def _recorded(journal: Journal, stream: str = "job/a") -> list[Payload]:
    payloads = [decode(event.kind, event.data) for event in await journal.read(stream)]
    return [payload for payload in payloads if payload is not None]


async def _filled(journal: Journal, stream: str = "job/a") -> None:
    """A stream with a small and a large value, another below it, and evidence."""
    small, large, raw = pack(SMALL), pack(LARGE), pack(LARGE).blobs[0]
    created = JobCreated(kind="recipe", name="go", input=small.inline)
    writer = await journal.create(stream, "job", created, patch=_ABOUT)
    item = {"kind": "x", "inline": "secret", "raw_pointer": raw.digest}
    attached = EvidenceAttached(invocation_id="i", step="1", items=(item,))
    await journal.append(writer, attached, JobCompleted(result_blob=large.ref), synced=False, blobs=(raw, *large.blobs))
    await journal.post(f"{stream}/inbox", "inbox", SignalSent(name="go", payload=small.inline))


async def check_no_value_of_a_subject_stands_in_an_event(storage: Storage) -> None:
    """Small or large, it lies beside it, is read back as it was, and nothing of it is in events, heads or lists."""
    async with opened(storage) as journal:
        await _filled(journal)
        for stream in ("job/a", "job/a/inbox"):
            assert all(b"secret" not in event.data for event in await journal.read(stream))
            assert (await head_of(journal, stream)).subject == "customer-7"
        created, attached, completed = await _recorded(journal)
        assert isinstance(created, JobCreated)
        assert isinstance(attached, EvidenceAttached)
        assert isinstance(completed, JobCompleted)
        assert await journal.value(created.input, created.input_blob) == SMALL
        assert await journal.value(completed.result, completed.result_blob) == LARGE
        assert isinstance(completed.result_blob, BlobRef)
        assert completed.result_blob.bytes == len(LARGE)
        assert await journal.blob(pack(LARGE).blobs[0].digest) is None, "not under a digest that can be guessed"
        assert [head.stream for head in await journal.heads(HeadQuery(subject="customer-7"))] == [
            "job/a/inbox",
            "job/a",
        ]
        assert [await journal.verify(stream) for stream in ("job/a", "job/a/inbox")] == [3, 1]


async def check_no_two_streams_share_a_value_of_a_subject(storage: Storage) -> None:
    """Nor does one stream twice: each has bytes of its own."""
    async with opened(storage) as journal:
        small = pack(SMALL)
        created = JobCreated(kind="recipe", name="go", input=small.inline)
        for name in "ab":
            await journal.create(f"job/{name}", "job", created, created, patch=_ABOUT)
        refs = [payload for name in "ab" for payload in await _recorded(journal, f"job/{name}")]
        digests = {
            payload.input_blob.digest for payload in refs if isinstance(payload, JobCreated) and payload.input_blob
        }
        assert len(digests) == 4


async def check_what_is_erased_is_gone_and_the_chain_is_whole(storage: Storage) -> None:
    """Every value of every stream of the subject, its evidence as well, and nothing of anyone else."""
    async with opened(storage) as journal:
        await _filled(journal)
        await journal.create("job/b", "job", JobCreated(kind="recipe", name="go", input=pack(SMALL).inline))
        erased = await erase(journal, "customer-7", by="ann", reason="asked to")
        assert erased == Erased(streams=2, values=5)
        created, _attached, completed = await _recorded(journal)
        assert isinstance(created, JobCreated)
        assert isinstance(completed, JobCompleted)
        for ref in (created.input_blob, completed.result_blob):
            with refused(Code.PAYLOAD_ERASED):
                await journal.value(completed.result, ref)
        examined = await journal.examine("job/a")
        assert (examined.events, examined.erased) == (3, 3)
        assert (await journal.examine("job/a/inbox")).erased == 1
        other = (await _recorded(journal, "job/b"))[0]
        assert isinstance(other, JobCreated)
        assert await journal.value(other.input, other.input_blob) == SMALL
        after, left = "", b""
        while page := await journal.blobs(after):
            left += b"".join(blob.data for blob in page)
            after = page[-1].digest
        assert b"secret" not in left
        assert await erase(journal, "customer-7") == Erased(streams=2, values=0), "once more takes nothing away"


async def check_bytes_that_were_erased_never_come_back(storage: Storage) -> None:
    """Neither by a copy from a journal that still has them, nor in a copy made before the erasure."""
    async with opened(storage) as journal:
        await _filled(journal)
        before = [blob for blob in await journal.blobs() if blob.data]
        await erase(journal, "customer-7")
        await journal.put_blobs(before)
        assert {blob.data for blob in await journal.blobs()} == {b""}
        assert (await journal.examine("job/a")).erased == 3


async def check_a_value_that_is_gone_without_a_record_is_found(storage: Storage) -> None:
    """Emptied bytes alone are no erasure."""
    async with opened(storage) as journal:
        await _filled(journal)
        blobs = await journal.blobs()
        await journal.put_blobs([type(blob)(blob.digest, b"") for blob in blobs])
        with refused(Code.BLOB_MISSING):
            await journal.verify("job/a")
