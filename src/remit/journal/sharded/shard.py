"""One shard: its store, whether it answers, and what its callers hear while it does not.

    joining   its server is asked which shard it is; commits wait
    up        it answers
    down      it does not: JOURNAL_SHARD_UNAVAILABLE at once, until a look now and then finds it again

What a shard is stands in its own storage, so that shards that change places, or belong to another journal, are refused.

Asking several shards at once: those that answer, or all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import Final, Protocol, Self, TypeVar

import msgspec

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.commit import journal_closed, settle
from remit.journal.event import Append, Commit, HeadQuery, JournalFold
from remit.journal.port import Store
from remit.journal.retirement import RETIRED, STREAM, refusal
from remit.journal.sharded.placement import shard_of
from remit.journal.writer import copy_error
from remit.tasks import Tasks

T = TypeVar("T")

_log: Final = logging.getLogger("remit.journal")
_CLOCK: Final = SystemClock()
_LOOK_S: Final = 1.0
"""The interval at which a shard that is down is asked again."""
NAME: Final = "shard"
"""The fold in which a shard keeps what it is."""
_AWAY: Final = frozenset(
    {Code.JOURNAL_IO, Code.JOURNAL_FULL, Code.JOURNAL_READ_ONLY, Code.JOURNAL_MOVED, Code.JOURNAL_BACKUP}
)
"""Faults of a shard's storage that do not stop what the others do."""
_REMEDY: Final = "Start its server, or restore it; `remit journal shards` shows its state. Other work goes on."


class Size(msgspec.Struct, frozen=True):
    """The size of what a shard holds."""

    streams: int
    bytes: int


class ShardStore(Store, Protocol):
    """A store that can be one of several."""

    async def size(self) -> Size:
        """Return how much it holds."""
        ...

    async def freeze(self, append: Append) -> None:
        """End every lease, so that no holder writes any more, and append what lets nothing be written after it."""
        ...

    async def send(self, target: Self) -> None:
        """Fill an empty store with all of this one, as it is, positions too; all of it or nothing."""
        ...

    async def level(self, position: int) -> int:
        """Use no position up to this one any more for what is written from now on; the last one that was given out.

        `scan` reaches at least as far afterwards, as soon as those have ended who were writing.
        """
        ...


class ShardIdentity(msgspec.Struct, frozen=True):
    """The place of a shard among others, as it keeps it."""

    journal: str
    """A name of the whole, made with its first shard."""
    number: int
    count: int

    def holds(self, stream: str) -> bool:
        """Return whether a stream belongs on the shard; what says where the shard is belongs on each."""
        return stream == STREAM or shard_of(stream, self.count) == self.number

    def refusal(self, commit: Commit) -> JournalError | None:
        """Return why a commit is not taken: something in it belongs on another shard, so this one was opened alone."""
        for append in commit.appends:
            if not self.holds(append.stream):
                reason = f"this is shard {self.number} of {self.count} of a journal, and {append.stream} is on another"
                return JournalError(reason, code=Code.SETTINGS_INVALID, remedy=_ORDER)
        return None


class Shard:
    """One of `count` shards, by its number from 0."""

    def __init__(self, number: int, count: int, open_store: Callable[[], ShardStore], up: Callable[[], None]) -> None:
        self.number, self.count = number, count
        self.store = open_store()
        self.url = self.store.url
        self.identity: ShardIdentity | None = None
        """None: it was not asked yet."""
        self.failure: JournalError | None = None
        """None: it answers, as far as is known."""
        self._open_store, self._up = open_store, up
        self._closed = False
        self._early: list[Commit] = []
        self._journal: Callable[[], Awaitable[str]] = _unknown
        self._joining: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Return whether it is worth asking."""
        return self.failure is None

    def join(self, journal: Callable[[], Awaitable[str]]) -> None:
        """Ask it which shard it is; `journal` returns the name of the whole, which a new shard takes."""
        self._journal = journal
        self._joining = asyncio.create_task(self._join(), name=f"remit:shard-{self.number}")

    # --- use

    async def joined(self) -> ShardIdentity:
        """Return what it is, once it was asked. Raises JournalError, or SettingsError if it is another shard."""
        if self.identity is None and self._joining is not None and not self._closed:
            await asyncio.wait([self._joining])
        if self.failure is not None:
            raise copy_error(self.failure)
        if self.identity is None:
            raise journal_closed()
        return self.identity

    async def ask(self, work: Callable[[ShardStore], Awaitable[T]]) -> T:
        """Do something with its store. Raises JournalError (JOURNAL_SHARD_UNAVAILABLE) where that is down."""
        if self.identity is None or self.failure is not None:
            await self.joined()
        try:
            return await work(self.store)
        except JournalError as error:
            failure = self.told(error)
            if failure is error:
                raise
            raise failure from error

    def submit(self, commit: Commit) -> None:
        """Queue a commit; one that fails because the shard is down hears that."""
        if self.failure is not None:
            settle([(commit, copy_error(self.failure))])
        elif self.identity is None and not self._closed:
            self._early.append(commit)
        else:
            if (on_error := commit.on_error) is not None:
                commit.on_error = lambda error: on_error(self.told(error))
            if (on_done := commit.on_done) is not None:
                commit.on_done = lambda error: on_done(error if error is None else self.told(error))
            self.store.submit(commit)

    @property
    def backlog(self) -> int:
        """Bytes that wait to be written."""
        return self.store.backlog + (sum(commit.size for commit in self._early) if self._early else 0)

    def told(self, error: JournalError) -> JournalError:
        """Return what a caller hears of an error, and look at the shard from now on if it is away."""
        if error.code not in _AWAY:
            return error
        self.fail(error.message)
        return self._unavailable(error.message)

    def fail(self, reason: str) -> None:
        """Take it for down, until it answers again."""
        if self.failure is None and not self._closed:
            _log.warning("shard %d of the journal is down, and lists leave out what it has: %s", self.number, reason)
            self.failure = self._unavailable(reason)
            early, self._early = self._early, []
            settle([(commit, copy_error(self.failure)) for commit in early])
            self._looking = asyncio.create_task(self._look(), name=f"remit:shard-{self.number}-look")

    def _unavailable(self, reason: str) -> JournalError:
        message = f"shard {self.number} of the journal is down: {reason}"
        return JournalError(message, code=Code.JOURNAL_SHARD_UNAVAILABLE, remedy=_REMEDY)

    async def close(self) -> None:
        """Write what was submitted, and end."""
        if self._joining is not None and not self._joining.done():
            if not self._early:
                self._joining.cancel()
            await asyncio.wait([self._joining])
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        await self.store.close()

    # --- whether it is there

    async def _join(self) -> None:
        try:
            self.identity = await self._ask_identity()
        except JournalError as error:
            if error.code in _AWAY or error.code is Code.JOURNAL_SHARD_UNAVAILABLE:
                self.fail(error.message)
            else:
                self._refuse(error)
        except SettingsError as error:
            self._refuse(JournalError(error.message, code=error.code, remedy=error.remedy))
        early, self._early = self._early, []
        for commit in early:
            self.submit(commit)

    def _refuse(self, error: JournalError) -> None:
        """Fail for good: it is not the shard that the settings say."""
        self.failure = error

    async def _ask_identity(self) -> ShardIdentity:
        """Return what it keeps, or let it become a shard. Raises JournalError, or SettingsError if it is another."""
        head = await self.store.head(STREAM)
        if head is not None and head.state in RETIRED:
            raise refusal(self.url, head.state, head.title)
        folds = await self.store.folds(NAME, ())
        if not folds:
            if await self.store.heads(HeadQuery(limit=1)):
                raise SettingsError(f"{self.url} is a journal of its own, not a shard", remedy=_CHOOSE)
            new = ShardIdentity(await self._journal(), self.number, self.count)
            await self.store.keep_folds([JournalFold(NAME, 1, msgspec.json.encode(new))], 0)
            folds = await self.store.folds(NAME, ())  # another process may have been faster
        identity = msgspec.json.decode(folds[0].data, type=ShardIdentity)
        if (identity.number, identity.count) != (self.number, self.count):
            reason = f"{self.url} is shard {identity.number} of {identity.count}, not {self.number} of {self.count}"
            raise SettingsError(reason, remedy=_ORDER)
        if self.number and self.identity is None:
            with contextlib.suppress(JournalError):  # the first one may be down, and this one goes on without it
                if identity.journal != await self._journal():
                    raise SettingsError(f"{self.url} is a shard of another journal", remedy=_CHOOSE)
        return identity

    async def _look(self) -> None:
        """Ask it now and then until it answers."""
        while True:
            await _CLOCK.sleep(_LOOK_S)
            if self.identity is None:  # one that could not be opened stays so
                with contextlib.suppress(JournalError):
                    await self.store.close()
                self.store = self._open_store()
            try:
                self.identity = await self._ask_identity()
            except JournalError:
                continue
            except SettingsError as error:
                self._refuse(JournalError(error.message, code=error.code, remedy=error.remedy))
                return
            self.failure = None
            _log.warning("shard %d answers again", self.number)
            self._up()
            return


async def _unknown() -> str:
    """Return nothing: it was not told of the others yet."""
    raise journal_closed()


_ORDER: Final = "Give the shards in the order in which the journal was made, all of them."
_CHOOSE: Final = "Name the shard that was there, or an empty schema for a new journal: ?schema=NAME."


Work = Callable[[int, ShardStore], Awaitable[T]]
"""Something to do with the store of the shard of a number."""

PATIENCE_S: Final = 5.0
"""The time that a shard may take for its part of an answer before it counts as down."""


_SILENT: Final = "no answer came in time"


class Shards:
    """All shards of a journal, in order."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.every = shards
        self.count = len(shards)
        self._late = Tasks()

    def of(self, stream: str) -> Shard:
        """Return the shard of a stream."""
        return self.every[shard_of(stream, self.count)]

    async def answers(self, stream: str) -> bool:
        """Return whether the shard of a stream answers; one that is still joining has PATIENCE_S for that."""
        shard = self.of(stream)
        if shard.identity is None and shard.is_up:
            with contextlib.suppress(JournalError):  # which then stands in the shard
                await self.some(_nothing, [shard.number])
        return shard.is_up

    def by_number(self, items: Iterable[T], stream: Callable[[T], str]) -> dict[int, list[T]]:
        """Return items by the number of the shard that their stream is on."""
        groups: dict[int, list[T]] = {}
        for item in items:
            groups.setdefault(shard_of(stream(item), self.count), []).append(item)
        return groups

    async def some(self, work: Work[T], numbers: Iterable[int] | None = None) -> dict[int, T]:
        """Return the answers, by number, of all shards or of these, without those that are down.

        One that does not answer in time counts as down. Raises JournalError if all are down, or one has another fault.
        """
        shards = [*self.every] if numbers is None else [self.every[number] for number in numbers]
        tasks = {shard: asyncio.create_task(_ask(shard, work)) for shard in shards}
        await self._in_time(tasks)
        for shard, task in tasks.items():
            if not task.done() or task.cancelled():
                shard.fail(_SILENT)
        ended = {shard: task for shard, task in tasks.items() if task.done() and not task.cancelled()}
        errors = [error for task in ended.values() if (error := task.exception()) is not None]
        for error in errors:
            if not isinstance(error, JournalError) or error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                raise error
        answers = {shard.number: task.result() for shard, task in ended.items() if task.exception() is None}
        for shard in shards if not answers else ():
            raise copy_error(shard.failure) if shard.failure is not None else journal_closed()
        return answers

    async def all(self, work: Work[T]) -> list[T]:
        """Return the answers of all shards. Raises JournalError (JOURNAL_SHARD_UNAVAILABLE) if one is down."""
        answers = await self.some(work)
        self.insist(answers)
        return [answers[number] for number in range(self.count)]

    def insist(self, answers: Container[int]) -> None:
        """Raise JournalError (JOURNAL_SHARD_UNAVAILABLE) if the answer of a shard is missing."""
        for shard in self.every:
            if shard.number not in answers:
                raise copy_error(shard.failure) if shard.failure is not None else journal_closed()

    async def _in_time(self, tasks: dict[Shard, asyncio.Task[T]]) -> None:
        """Wait for all of them, and no longer than PATIENCE_S; the others end by themselves, unheard."""
        if not tasks:
            return
        try:
            _, late = await asyncio.wait(tasks.values(), timeout=PATIENCE_S)
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            await asyncio.wait(tasks.values())
            raise
        for task in late:
            task.cancel()
            task.add_done_callback(_heard)
            self._late.keep(task)


async def _nothing(_number: int, _store: ShardStore) -> None:
    """Ask only whether it is there."""


async def _ask(shard: Shard, work: Work[T]) -> T:
    return await shard.ask(lambda store: work(shard.number, store))


def _heard(task: asyncio.Task[T]) -> None:
    """Take notice of how it ended, so that it is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
