"""Changes of schedules: each holds the lease of its stream, so that no pass goes on beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, BusyError, NotFoundError, StateError
from remit.jobs.state import stream_of as job_stream
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.leases import HeldLease, LeaseTerms, Owner
from remit.journal.scan import every_head
from remit.nearest import did_you_mean
from remit.parts.schedules import kinds as k
from remit.parts.schedules.state import KIND, ScheduleState, read_state, stream_of
from remit.parts.schedules.work import OccurrenceLog

if TYPE_CHECKING:
    from collections.abc import Collection

    from remit.journal.event import Lease, StreamHead
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.parts.schedules.schedule import Schedule

Source = Literal["person", "settings", "recipe"]
_LEASE_S: Final = 10.0
_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 90.0
"""Seconds that a change waits for another holder: longer than the lease of a worker that froze."""


class Declared(NamedTuple):
    """A schedule as a process finds it in a file."""

    schedule: Schedule
    source: Source
    place: str


class ScheduleChanges:
    """Changes schedules of one journal for a principal."""

    def __init__(self, journal: Journal, principal: str) -> None:
        self.journal = journal
        self._principal = principal

    async def heads(self) -> list[StreamHead]:
        """Return the heads of all schedules, the removed ones too, by name."""
        query = HeadQuery(kind=KIND)
        return sorted([head async for head in every_head(self.journal, query)], key=lambda head: head.stream)

    async def state(self, name: str) -> ScheduleState:
        """Read where a schedule stands. Raise NotFoundError if there is none, or it was removed."""
        head = await self.journal.head(stream_of(name))
        state = await read_state(self.journal, head) if head is not None else None
        if state is None or state.record.removed:
            known = [state_head.title for state_head in await self.heads() if state_head.state != "removed"]
            hint = did_you_mean(name, known) or "`remit schedule list` shows them."
            raise NotFoundError(f"no schedule is called {name}", code=Code.SCHEDULE_NOT_FOUND, remedy=hint)
        return state

    async def set(self, declared: Declared, *, by: str = "") -> None:
        """Make a schedule, or let it become another; nothing is written if it is this one already."""
        schedule = declared.schedule
        if await self.journal.head(stream_of(schedule.name)) is None:
            first = schedule.times.after(self.journal.clock.now())
            change = self._change(declared, 1, first, by)
            due = None if first is None else schedule.times.due(first)
            patch = HeadPatch(state="pending", due_at=due, route=schedule.recipe, title=schedule.name)
            try:
                await self.journal.create(stream_of(schedule.name), KIND, change, patch=patch)
            except AppendConflictError:  # another process was faster
                await self.set(declared, by=by)
            return
        held = await self._hold(schedule.name)
        if held.is_this(declared):
            await held.release()
            return
        following = held.following(schedule, self.journal.clock.now())
        change = self._change(declared, held.revision + 1, following, by)
        await held.release(change, schedule=schedule, following=following)

    async def pause(
        self, name: str, *, by: str = "", reason: str = "", cause: Literal["person", "undeclared"] = "person"
    ) -> None:
        """Pause a schedule. Raise NotFoundError."""
        await self.state(name)
        held = await self._hold(name)
        await held.release(k.SchedulePaused(cause=cause, by=by or self._principal, reason=reason), following=None)

    async def resume(self, name: str, *, by: str = "") -> None:
        """Let a schedule go on from now, if it pauses; the times of its pause are passed over. Raise NotFoundError."""
        if (await self.state(name)).record.pause is None:
            return
        held = await self._hold(name)
        following = held.first_after(self.journal.clock.now())
        await held.release(k.ScheduleResumed(by=by or self._principal, next=following), following=following)

    async def remove(self, name: str, *, by: str = "") -> None:
        """Let nothing start by a schedule any more. Raise NotFoundError, or StateError if it stands in a file."""
        require_free(await self.state(name), name)
        held = await self._hold(name)
        await held.release(k.ScheduleRemoved(by=by or self._principal), following=None, state="removed")

    async def ask_run(self, name: str, run_asked: k.ScheduleRunAsked) -> OccurrenceLog:
        """Record that someone wants jobs; return what files them. Raise NotFoundError."""
        await self.state(name)
        held = await self._hold(name)
        await held.release(run_asked)
        return held.log

    async def sync(self, declared: Mapping[str, Declared], file: str, recipes: Collection[str]) -> None:
        """Let what files declare hold, and pause what the same files do not have any more."""
        for entry in declared.values():
            await self.set(entry)
            state = await self.state(entry.schedule.name)
            if state.record.pause is not None and state.record.pause.cause == "undeclared":
                await self.resume(entry.schedule.name)
        for head in await self.heads():
            if head.title in declared:
                continue
            record = (await read_state(self.journal, head)).record
            change = record.change
            if change is None or record.removed or record.pause is not None:
                continue
            if (change.source == "settings" and change.place == file) or (
                change.source == "recipe" and head.route in recipes
            ):
                where = file if change.source == "settings" else f"@recipe({head.route!r})"
                await self.pause(head.title, reason=f"{where} does not have it any more", cause="undeclared")

    def _change(self, declared: Declared, revision: int, following: int | None, by: str) -> k.ScheduleChanged:
        schedule = declared.schedule
        return k.ScheduleChanged(
            schedule=schedule.name,
            revision=revision,
            spec=msgspec.Raw(msgspec.json.encode(schedule)),
            digest=schedule.digest,
            source=declared.source,
            place=declared.place,
            by=by or self._principal,
            next=following,
        )

    async def _hold(self, name: str) -> HeldSchedule:
        lease = await self._leased(stream_of(name))
        state = await read_state(self.journal, lease.head)
        held = HeldSchedule(self.journal, lease, state)
        await held.look()
        return held

    async def _leased(self, stream: str) -> Lease:
        clock, terms = self.journal.clock, LeaseTerms(kind=KIND, owner=str(Owner.this()), seconds=_LEASE_S)
        until = clock.monotonic() + _PATIENCE_S
        while clock.monotonic() < until:
            head = await self.journal.head(stream)
            owner = Owner.parse(head.lease_owner or "") if head is not None else None
            over = str(owner) if owner is not None and owner.dead() else None
            lease = await self.journal.acquire(stream, terms.claim(clock.now()), over)
            if lease is not None:
                return lease
            await clock.sleep(_LOOK_S)
        raise BusyError(f"{stream} is held by another process", remedy="Try again.", again_s=int(_LEASE_S))


class HeldSchedule:
    """A schedule whose lease a change holds."""

    def __init__(self, journal: Journal, lease: Lease, state: ScheduleState) -> None:
        self._journal = journal
        self._lease = HeldLease(journal, lease.head)
        self._state = state
        if state.record.spec is None or state.record.change is None:
            raise NotFoundError(f"{lease.head.stream} has no schedule", code=Code.SCHEDULE_NOT_FOUND)
        self._spec, self._change = state.record.spec, state.record.change
        self.revision = self._change.revision
        self.log = OccurrenceLog(journal, self._lease, state, self._spec)
        self._left: k.ScheduleFired | None = None
        """The firing that a process died over before it was recorded."""

    async def look(self) -> None:
        """See whether a process died between starting a job and recording it."""
        at = self._state.next
        if at is not None and await self._journal.head(job_stream(job := self.log.job(at))) is not None:
            self._left = self.log.firing(at, job)

    def is_this(self, declared: Declared) -> bool:
        """Return whether it is what a file declares, or a person wants."""
        change = (self._change.digest, self._change.source, self._change.place)
        return change == (declared.schedule.digest, declared.source, declared.place) and not self._state.record.removed

    @property
    def _next(self) -> int | None:
        return self._left.next if self._left is not None else self._state.next

    def first_after(self, now: int, schedule: Schedule | None = None) -> int | None:
        """Return the first time after now, and after every time that something came of."""
        occurrence = self._left or self._state.occurrence
        return (schedule or self._spec).times.after(max(now, occurrence.at if occurrence is not None else 0))

    def following(self, schedule: Schedule, now: int) -> int | None:
        """Return the next time of what it becomes: the same where only something else than its times changes."""
        before = self._spec
        same = (before.cron, before.every, before.zone) == (schedule.cron, schedule.every, schedule.zone)
        goes_on = same and not self._state.record.removed and self._state.record.pause is None
        return self._next if goes_on and self._next is not None else self.first_after(now, schedule)

    async def release(
        self,
        *changes: Payload,
        schedule: Schedule | None = None,
        following: int | msgspec.UnsetType | None = msgspec.UNSET,
        state: str = "",
    ) -> None:
        """Give the lease up with these changes; `following` is the time that comes next by them."""
        spec = schedule or self._spec
        began, beside = self.log.drafts(self._left) if self._left is not None else ((), ())
        pauses = self._state.record.pause is not None and not any(
            isinstance(change, k.ScheduleResumed) for change in changes
        )
        removed = self._state.record.removed and schedule is None
        comes = self._next if following is msgspec.UNSET else following
        due = None if comes is None or pauses or removed else spec.times.due(comes)
        word = state or ("removed" if removed else "pending" if due is not None else "waiting")
        patch = HeadPatch(state=word, due_at=due, route=spec.recipe)
        await self._lease.release(*began, *changes, patch=patch, beside=beside)


def require_free(state: ScheduleState, name: str) -> None:
    """Raise StateError if a schedule stands in a file: a change here would not last."""
    change, pause = state.record.change, state.record.pause
    if change is None or change.source == "person" or (pause is not None and pause.cause == "undeclared"):
        return
    where = change.place if change.source == "settings" else f"@recipe({change.schedule!r}, schedule=…)"
    raise StateError(
        f"{name} stands in {where}", code=Code.SCHEDULE_EXISTS, remedy="Change it there, or pause it here."
    )
