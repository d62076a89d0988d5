"""Whatever was recorded and whichever records go: the rest verifies, has all its values, and no value is left over."""

from __future__ import annotations

import asyncio
import random
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.clock import SystemClock
from remit.errors import AppendConflictError
from remit.journal.blobs import INLINE_LIMIT, pack
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import JobCreated, JobForked, ToolInvocationFinished, WaitCompleted
from remit.journal.prune import StubTerms, Uses, look_at, prune_unit
from remit.journal.seals import KEY_BYTES, Seals
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.journal.values import is_pruned
from remit.journal.writer import StreamWriter

VALUES = [f'"{letter * INLINE_LIMIT}"'.encode() for letter in "abcd"]


class History:
    """Jobs that record a few values over and over, fork each other, and are pruned."""

    def __init__(self, journal: Journal, chance: random.Random) -> None:
        self.journal = journal
        self.chance = chance
        self.writers: dict[str, StreamWriter] = {}
        self.named: dict[str, set[str]] = {}
        """The digests that each stream names."""
        self.forks: dict[str, str] = {}
        self.pruned: set[str] = set()
        self._numbers = count(1)

    @property
    def whole(self) -> list[str]:
        return [stream for stream in self.writers if stream not in self.pruned]

    async def make(self) -> None:
        stream = f"job/job_{next(self._numbers):026}"
        begun = [JobCreated(kind="recipe", name="r")]
        patch = HeadPatch(state="running", title="t", labels={"remit.name": "r"})
        self.writers[stream] = await self.journal.create(stream, "job", *begun, patch=patch)
        self.named[stream] = set()
        await self.record(stream)

    async def fork(self) -> None:
        if not self.whole:
            return
        other = self.chance.choice(self.whole)
        head = await self.journal.head(other)
        assert head is not None
        stream = f"job/job_{next(self._numbers):026}"
        forked = JobForked(job=other.partition("/")[2], seq=head.seq, hash=head.hash.hex(), step="", shared=True)
        patch = HeadPatch(state="running", labels={"remit.name": "r"})
        created = JobCreated(kind="recipe", name="r")
        self.writers[stream] = await self.journal.create(stream, "job", created, forked, patch=patch)
        self.named[stream], self.forks[stream] = set(), other

    async def record(self, stream: str = "") -> None:
        if not (self.whole or stream):
            return
        stream = stream or self.chance.choice(self.whole)
        packed = pack(self.chance.choice(VALUES))
        finished = ToolInvocationFinished(invocation_id="i", step="1", outcome="success", result_blob=packed.ref)
        await self.journal.append(self.writers[stream], finished, synced=True, blobs=packed.blobs)
        self.named[stream] |= {blob.digest for blob in packed.blobs}

    async def message(self) -> None:
        if not self.whole:
            return
        stream, packed = self.chance.choice(self.whole), pack(self.chance.choice(VALUES))
        came = WaitCompleted(step="1", wait_type="message", correlation_key="k", payload_blob=packed.ref)
        inbox = f"{stream}/inbox"
        await self.journal.post(inbox, "inbox", came, blobs=packed.blobs)
        self.named.setdefault(inbox, set()).update(blob.digest for blob in packed.blobs)

    async def prune(self) -> None:
        if not self.whole:
            return
        stream = self.chance.choice(self.whole)
        heads = [await self.journal.head(stream), *await self.journal.heads(HeadQuery(prefix=f"{stream}/"))]
        parts = [await look_at(self.journal, head) for head in heads if head is not None]
        uses = Uses(self.journal, (digest for part in parts for digest in part.blobs))
        needed = any(other == stream for fork, other in self.forks.items() if fork not in self.pruned)
        if needed:
            with pytest.raises(AppendConflictError):
                await prune_unit(self.journal, parts, uses, StubTerms())
            return
        await prune_unit(self.journal, parts, uses, StubTerms(by="ann"))
        for part in parts:
            self.named.pop(part.head.stream, None)
        self.pruned.add(stream)

    async def check(self) -> None:
        assert await self.journal.integrity() == []
        for head in await self.journal.heads(HeadQuery(limit=1_000)):
            examined = await self.journal.examine(head.stream)
            root = "/".join(head.stream.split("/")[:2])
            assert (examined.pruned > 0) == is_pruned(head) == (root in self.pruned), head.stream
        kept = {blob.digest for blob in await self.journal.blobs() if blob.data}
        assert kept == {digest for digests in self.named.values() for digest in digests}


ACTS = st.lists(st.sampled_from(["make", "record", "message", "fork", "prune", "make", "prune"]), max_size=25)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ACTS, st.integers(0, 10_000))
def test_what_is_left_of_any_history_verifies_and_has_its_values(acts: list[str], seed: int) -> None:
    async def live() -> None:
        clock = SystemClock()
        journal = Journal(SqliteStore(MEMORY, clock), clock, seals=Seals([b"k" * KEY_BYTES]))
        history = History(journal, random.Random(seed))
        try:
            for act in acts:
                await getattr(history, act)()
            await history.check()
        finally:
            await journal.close()

    asyncio.run(live())
