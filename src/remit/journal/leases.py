"""Leases as their holders have them: the terms, the stream held under one, its renewal, and the proof of it.

One way for every kind of stream. `LeaseTerms` make the claim. Who gets a stream writes to it through a `HeldLease`,
whose fencing token the storage compares in the transaction of every write (rule 4), and gives it up in the transaction
of the last one. The token decides, not the clock: a lease that ran out counts until someone else has the stream. A
holder that is a stranger to this process shows a `LeaseProof` instead.

The holder of a lease: one process of one machine, so that its death can be noticed before its lease lapses.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.ids import new_id
from remit.journal.event import Blob, HeadPatch, LeaseClaim, StreamHead
from remit.tasks import first

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.journal.writer import Draft, StreamWriter
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

    def claim(self, now: int, *, limit: int = 1, routes: tuple[str, ...] = ()) -> LeaseClaim:
        """Return the request for leases at this time."""
        return LeaseClaim(
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

    def __init__(self, journal: Journal, head: StreamHead) -> None:
        self.journal = journal
        self.stream = head.stream
        self.epoch = head.epoch
        self.owner = head.lease_owner or ""
        self.writer: StreamWriter = journal.writer(head.stream, head.kind, head)

    async def current(self) -> StreamHead | None:
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
        self,
        *payloads: Payload,
        patch: HeadPatch,
        synced: bool = True,
        blobs: Sequence[Blob] = (),
        beside: Sequence[Draft] = (),
    ) -> None:
        """Give the lease up with this last write. Raise AppendConflictError if it is lost, or was given up before.

        What stands `beside` is written to other streams of its root in the same transaction.
        """
        patch = replace(patch, release=True)
        if beside:
            await self.journal.commit(self.writer.draft(*payloads, patch=patch), *beside, synced=synced, blobs=blobs)
        else:
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
    renewed = set(await journal.renew([(held.stream, held.epoch) for held in leases], until)) if leases else set()
    lost = [held for held in leases if held.stream not in renewed]
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
    def drawn(cls, head: StreamHead, chance: RandomSource) -> LeaseProof:
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

    def proves(self, head: StreamHead, owner: str, digest: str) -> bool:
        """Return whether it belongs to the lease of this head, of which the stream recorded owner and digest."""
        return (self.owner, self.digest, self.epoch) == (owner, digest, head.epoch)


_PID: Final = re.compile("[0-9]{1,9}").fullmatch
"""More than any kernel counts to, and less than one takes for an error."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process."""

    host: str
    pid: int
    started: str
    """When the process began, as its kernel counts; tells a recycled process id from the original."""
    worker: str
    """Tells several workers of one process apart."""

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started}/{self.worker}"

    @property
    def words(self) -> str:
        """The process, for people."""
        return f"process {self.pid} on {self.host.partition('/')[0]}"

    @classmethod
    def this(cls) -> Owner:
        """A new worker of this process."""
        pid = os.getpid()
        return cls(host=_host(), pid=pid, started=_started(pid), worker=new_id("w"))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """An owner as it was recorded; None for something else."""
        parts = text.rsplit("/", 3)
        if len(parts) != 4 or not _PID(parts[1]):  # noqa: PLR2004 - host, pid, start, worker
            return None
        return cls(host=parts[0], pid=int(parts[1]), started=parts[2], worker=parts[3])

    def dead(self) -> bool:
        """Return whether the process certainly runs no more; an owner on another machine never is."""
        if self.host != _host():
            return False
        if not _alive(self.pid):
            return True
        return _started(self.pid) != self.started


def alive(recorded: str) -> bool:
    """Return whether the process of a recorded owner is known to run still; one on another machine is not."""
    owner = Owner.parse(recorded)
    return owner is not None and owner.host == _host() and not owner.dead()


@cache
def _host() -> str:
    """This machine, and if known this boot and this container: each counts processes again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        boot = "-"
    try:
        processes = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        processes = 0
    return f"{socket.gethostname()}/{boot}/{processes}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "-"
    # Fields follow the command in parentheses, which may itself hold spaces and parentheses; state is the first.
    fields = stat.rpartition(b")")[2].split()
    return "-" if fields[0] == b"Z" else fields[19].decode()
