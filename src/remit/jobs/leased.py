"""A job while this process holds its lease: its inbox, its questions, and every way that it is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from remit.clock import SECOND
from remit.errors import AppendConflictError
from remit.jobs.effects.questions import Questions
from remit.jobs.inbox import Inbox
from remit.jobs.routes import kept_for, unkept
from remit.jobs.state import CODE, WAITING, History, job_of, stuck_by
from remit.journal.event import HeadPatch, Lease
from remit.journal.kinds import ErrorInfo, JobFailed, JobWaiting, Payload, RecoveryStarted
from remit.journal.leases import HeldLease

if TYPE_CHECKING:
    from remit.gateway.confirmations import Confirmations
    from remit.journal.journal import Journal

_DEATHS: Final = 3
"""Processes that may die of a job before it is left alone."""
_SUSPECT: Final = _DEATHS - 1
DEADLY: Final = f"{_DEATHS} processes in a row died while they ran this job"


class LeasedJob(HeldLease):
    """The stream of a leased job, its inbox, and the questions it asks."""

    def __init__(self, journal: Journal, confirmations: Confirmations, lease: Lease) -> None:
        head = lease.head
        super().__init__(journal, head)
        self.labels = head.labels
        self.priority = head.priority
        self.job = job_of(head.stream)
        self.inbox = Inbox(journal, self.job)
        self.questions = Questions(journal, confirmations, self.writer)
        self.seen_wakes = head.wakes
        self.route = head.route
        """The route of those that can take the job next."""
        self._lease = lease
        self._recovered = False

    async def refresh(self) -> None:
        """Read the inbox, unless the job is new and nothing can be in it: no message comes without waking the job."""
        if self.seen_wakes or self._lease.previous_state != "pending":
            await self.inbox.refresh()

    async def take_over(
        self, history: History, suspects: dict[str, History], alive: Callable[[str], bool]
    ) -> Literal["go on", "later", "deadly"]:
        """Record it if this worker goes on after one that disappeared, and say whether it may go on.

        `alive` says whether an owner runs still. Of the `suspects`, jobs whose processes died again and again, one at a
        time goes on here: then only the one is blamed that ends this process too. `deadly` has ended enough of them.
        """
        if not self._recovered and self._lease.previous_state == "running":
            self._recovered = True
            owner, previous = self._lease.head.lease_owner or "", self._lease.previous_owner or ""
            event = RecoveryStarted(owner=owner, previous_owner=previous, alive=bool(previous) and alive(previous))
            # Durable before anything runs if a process died: should this one die too, the next has to know.
            await self.journal.append(self.writer, event, synced=bool(previous))
            history.take(event)
        if history.deaths.count >= _DEATHS:
            return "deadly"
        if history.deaths.count >= _SUSPECT and any(other.deaths.count >= _SUSPECT for other in suspects.values()):
            await self._postpone(SECOND, self.route)
            return "later"
        suspects[self.stream] = history
        return "go on"

    async def leave_to_code(self, history: History, with_code: Callable[[str, str, str], Awaitable[str]]) -> None:
        """Leave the job to another process that works now and has the code that recorded it.

        Raises AppendConflictError if there is one: the job is lost to it.
        """
        created = history.created
        if created is None or created.kind != "recipe":
            return
        owner = await with_code(created.name, history.execution, self.owner)
        if owner:
            await self._postpone(0, kept_for(self.route, owner))
            raise AppendConflictError(f"{self.stream}: left to a process that has the code of the job")

    async def _postpone(self, by: int, route: str) -> None:
        """Leave the job to workers of a route, in so many microseconds."""
        due = self.journal.clock.now() + by
        await self.release(patch=HeadPatch(state="pending", due_at=due, route=route))

    async def check(self) -> bool:
        """Return whether the job is still ours; what was left in its inbox is read."""
        head = await self.current()
        if head is None:
            return False
        if head.wakes != self.seen_wakes:
            self.seen_wakes = head.wakes
            await self.inbox.refresh()
        return True

    async def wait(self, due: int | None, name: str, value: str) -> bool:
        """Give the job up until `due` or until something wakes it, with a label; False if something already has."""
        patch = HeadPatch(state="waiting", due_at=due, route=self.route, labels=self._labels(name, value))
        return await self.park(patch, seen_wakes=self.seen_wakes)

    async def hand_on(self) -> None:
        """Let another worker go on at once."""
        await self.give_up(HeadPatch(due_at=self.journal.clock.now(), route=unkept(self.route)[0]))

    async def abandon(self, code: str = "") -> None:
        """Leave a job whose record is damaged: nothing is written to it, and no worker takes it before it is woken.

        With a code, of what is damaged beside its own events, lists say why.
        """
        patch = HeadPatch(due_at=None)
        if code:
            patch = HeadPatch(due_at=None, state="waiting", labels=self._labels(CODE, code))
        await self.release(patch=patch)

    async def leave(self, error: ErrorInfo, route: str, due_in: int | None, *, cancellable: bool) -> bool:
        """Leave the job, stuck; False if it is lost, or to be cancelled, which needs no code.

        Workers of `route` may take it in `due_in` microseconds; None: not before something wakes it.
        """
        before = self.seen_wakes
        waiting: JobWaiting | None = JobWaiting(
            step=error.step, wait_type="human", correlation_key=stuck_by(error.code), reason=error.message
        )
        while await self.check():
            if cancellable and self.inbox.cancel is not None:
                return False
            if waiting is not None:
                await self.journal.append(self.writer, waiting, synced=False)
                waiting = None
            now = self.journal.clock.now()
            due = None if due_in is None else now + due_in
            self.route = route or self.route
            if self.seen_wakes != before:  # what woke it meanwhile may have changed everything: any worker looks
                due, self.route = now, ""
            if await self.wait(due, CODE, error.code):
                return True
        return False

    async def finish(self, state: str, event: Payload, blobs: tuple[Any, ...] = ()) -> None:
        """Record the end of the job, durably."""
        if (state != "completed" or self.questions.asked) and await self.check():
            # Before the end, for an ended job is not looked at again; after a crash in between, the next one ends it.
            await self.questions.close(f"the job is {state}")
        labels = self._labels(CODE, event.error.code if isinstance(event, JobFailed) else "")
        patch = HeadPatch(state=state, due_at=None, closed=True, labels=labels)
        await self.release(event, patch=patch, blobs=blobs)

    def _labels(self, name: str, value: str) -> dict[str, str]:
        """The job's labels, with one of ours for lists."""
        given = {key: text for key, text in self._lease.head.labels.items() if key not in {WAITING, CODE}}
        return {**given, name: value} if value else given
