"""Leases as their holders have them: the terms, the stream held under one, its renewal, and the proof of it.

One way for every kind of stream. `LeaseTerms` make the claim. Who gets a stream writes to it through a `HeldLease`,
whose fencing token the storage compares in the transaction of every write (rule 4), and gives it up in the transaction
of the last one. The token decides, not the clock: a lease that ran out counts until someone else has the stream. A
holder that is a stranger to this process shows a `LeaseProof` instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import Blob, Claim, Head, HeadPatch
from remit.tasks import first

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.journal.writer import StreamWriter
    from remit.randomness import RandomSource

_RENEWALS: Final = 3
"""A lease is renewed so many times before it would run out."""
_EPOCH_DIGITS: Final = 18


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which one owner leases streams of a kind."""

    kind: str
    owner: str
    seconds: float
    """The time that a lease lasts, and each renewal of it."""
    states: tuple[str, ...] = ()
    """As in a claim, like `state`."""
    state: str | None = None

    def until(self, now: int) -> int:
        """Return when a lease ends that is taken or renewed now."""
        return now + int(self.seconds * SECOND)

    def claim(self, now: int, *, limit: int = 1, routes: tuple[str, ...] = ()) -> Claim:
        """Return the request for leases at this time."""
        return Claim(
            kind=self.kind,
            owner=self.owner,
            now=now,
            lease_until=self.until(now),
            limit=limit,
            states=self.states,
            routes=routes,
            state=self.state,
        )


class HeldLease:
    """A stream that is leased here: the one who holds this writes to it until the lease is given up or lost."""

    def __init__(self, journal: Journal, head: Head) -> None:
        self.journal = journal
        self.stream = head.stream
        self.epoch = head.epoch
        self.owner = head.lease_owner or ""
        self.writer: StreamWriter = journal.writer(head.stream, head.kind, head)

    async def current(self) -> Head | None:
        """Return the newest head while the lease is held. None: it is lost, and nothing is written any more."""
        head = await self.journal.head(self.stream)
        if head is None or (head.epoch, head.lease_owner or "") != (self.epoch, self.owner):
            self.writer.supersede()
            return None
        return head

    async def rewrite(self) -> None:
        """Take a new writer, for the last one was refused. Raise AppendConflictError if the lease is lost."""
        await self.journal.drained()
        head = await self.current()
        if head is None:
            raise AppendConflictError(f"{self.stream}: another writer took over the stream")
        self.writer = self.journal.writer(head.stream, head.kind, head)

    async def release(
        self, *payloads: Payload, patch: HeadPatch, synced: bool = True, blobs: Sequence[Blob] = ()
    ) -> None:
        """Give the lease up with this last write. Raise AppendConflictError if it is lost, or was given up before."""
        patch = replace(patch, release=True)
        await self.journal.append(self.writer, *payloads, synced=synced, patch=patch, blobs=blobs)
        self._over()

    async def park(self, patch: HeadPatch, *, seen_wakes: int) -> bool:
        """Give the lease up. False if something woke the stream meanwhile, or the lease is lost: look at `current`."""
        parked = await self.journal.park(self.writer, replace(patch, release=True), seen_wakes=seen_wakes)
        if parked:
            self._over()
        return parked

    async def give_up(self, patch: HeadPatch) -> None:
        """Give the lease up, unless it was lost or given up before; without waiting, for otherwise it lapses."""
        if self.writer.failure is None:
            try:
                await self.release(patch=patch, synced=False)
            except JournalError as error:
                if error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:  # there it lapses
                    raise

    def _over(self) -> None:
        """Write nothing more: the token is good until someone else takes the stream, and the lease is not."""
        self.writer.fail(AppendConflictError(f"{self.stream}: its lease was given up"))

    async def keep(self, terms: LeaseTerms) -> None:
        """Renew the lease until it is lost."""

        async def renew() -> bool:
            return not await renew_all(self.journal, (self,), terms.until(self.journal.clock.now()))

        await keep_renewing(self.journal.clock, terms.seconds, renew)


async def renew_all(journal: Journal, leases: Sequence[HeldLease], until: int) -> list[HeldLease]:
    """Prolong leases; return those that are lost, to which nothing is written any more."""
    kept = set(await journal.renew([(held.stream, held.epoch) for held in leases], until)) if leases else set()
    lost = [held for held in leases if held.stream not in kept]
    for held in lost:
        held.writer.supersede()
    return lost


async def keep_renewing(clock: Clock, seconds: float, renew: Callable[[], Awaitable[bool]]) -> None:
    """Call `renew` in good time, again and again, until it says that a lease of so many seconds is lost."""
    while True:
        await clock.sleep(seconds / _RENEWALS)
        if not await renew():
            return


async def heads_changed_within(journal: Journal, mark: int, seconds: float) -> int:
    """Wait until a head changed after `mark`, or so many seconds, after which leases may lapse; return the new mark."""
    changed, _ = await first(journal.heads_changed(mark), journal.clock.sleep(seconds))
    return mark if changed is None else changed


# --- proofs


class LeaseProof(msgspec.Struct, frozen=True, kw_only=True):
    """The proof of a lease that someone else holds: each write on its behalf needs it."""

    owner: str
    token: str
    """The fencing token and a secret, of which the journal keeps the digest alone."""

    @classmethod
    def drawn(cls, head: Head, chance: RandomSource) -> LeaseProof:
        """Return the proof of the lease that this head has; the holder alone gets it."""
        return cls(owner=head.lease_owner or "", token=f"{head.epoch}.{chance.uuid().hex}")

    @property
    def digest(self) -> str:
        """Return what is recorded of the token, so that a reader of the journal cannot use it."""
        return sha256(self.token.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def epoch(self) -> int:
        """The fencing token inside; -1 if the token has another form."""
        number, _, secret = self.token.partition(".")
        return int(number) if secret and number.isascii() and number.isdigit() and len(number) <= _EPOCH_DIGITS else -1

    def proves(self, head: Head, owner: str, digest: str) -> bool:
        """Return whether it belongs to the lease of this head, of which the stream recorded owner and digest."""
        return (self.owner, self.digest, self.epoch) == (owner, digest, head.epoch)
