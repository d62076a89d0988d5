"""Work units in the journal: which run of an issue is active, what its result was, and what is to be written of it.

Every change is decided from the folded stream and appended at the place that was read, so the question whether a run is
still the active one is answered in the transaction that accepts its result and queues its comment (rule 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, StateError
from remit.journal import kinds as k
from remit.journal.blobs import Packed, pack
from remit.journal.event import Blob, HeadPatch, HeadQuery, StreamHead
from remit.parts.work import kinds as w
from remit.parts.work.comment import Comment, comment_on, comment_on_switch
from remit.parts.work.order import WorkOrder
from remit.parts.work.references import IssueRef, RunId
from remit.parts.work.result import WorkResult
from remit.parts.work.unit import STREAM_KIND, State, WorkUnit, step_after, stream_of
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.kinds.payload import OptionalRaw, OptionalRef

T = TypeVar("T")
MakeOrder = Callable[[RunId], WorkOrder]

_ATTEMPTS: Final = 100
_CHILDREN: Final = 1_000
_TITLE: Final = 200
_REASON: Final = 1_000


class UnitChange(NamedTuple, Generic[T]):
    """The events that are appended to a unit, and its answer."""

    payloads: tuple[k.Payload, ...]
    answer: T
    blobs: tuple[Blob, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What Remit did with a result."""

    accepted: bool
    state: str
    """The state of the issue now."""
    code: str = ""
    """Why it was not accepted: `stale_result_discarded`, or the code with which it was refused."""
    trigger: str = ""
    """Under which a comment is to be written; empty: none is."""


class UnitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A work unit in a list."""

    issue_ref: str
    title: str
    state: str
    run_id: str
    executor: str
    updated_at: int
    group: str = ""
    """The group for which the control plane runs it now."""
    unwritten: bool = False
    """Whether a comment is queued."""
    blocked_by: tuple[str, ...] = ()
    """The open issues that it waits for."""
    parent: str = ""
    """The issue of which it is a part."""


class WorkStore:
    """The work units of one journal; every method may be called from any process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    # --- queries

    async def unit(self, issue: IssueRef) -> WorkUnit:
        """Return an issue's work. Raise NotFoundError (WORK_NOT_FOUND)."""
        return (await self._read(issue))[1]

    async def page(self, *, states: Sequence[str] = (), before: str = "", limit: int = 100) -> list[UnitRow]:
        """Return units, newest first, from their heads alone; `before` continues after an earlier page's last one."""
        last = stream_of(IssueRef.parse(before)) if before else None
        heads = await self.journal.heads(
            HeadQuery(kind=STREAM_KIND, states=tuple(states), before=last, limit=limit),
        )
        return [_row(head) for head in heads]

    async def children(self, issue: IssueRef) -> list[UnitRow]:
        """Return the units that are parts of an issue, newest first."""
        query = HeadQuery(kind=STREAM_KIND, labels={"parent": str(issue)}, limit=_CHILDREN)
        return [_row(head) for head in await self.journal.heads(query)]

    async def row(self, issue: IssueRef) -> UnitRow | None:
        """Return a unit as lists have it; None if nothing is worked on there."""
        head = await self.journal.head(stream_of(issue))
        return None if head is None else _row(head)

    async def order(self, issue: IssueRef, run_id: str) -> WorkOrder:
        """Return the order of a run, as it was given. Raise NotFoundError (WORK_NOT_FOUND)."""
        unit = await self.unit(issue)
        started = unit.orders.get(run_id)
        order = await self._value(started.order, started.order_blob, WorkOrder) if started is not None else None
        if order is None:
            raise _not_found(f"{issue} has no run {line(run_id)}")
        return order

    async def result(self, issue: IssueRef, run_id: str) -> WorkResult | None:
        """Return the result that was accepted of a run; None if none was."""
        accepted = (await self.unit(issue)).results.get(run_id)
        return await self._value(accepted.result, accepted.result_blob, WorkResult) if accepted is not None else None

    async def late(self, issue: IssueRef, run_id: str) -> list[WorkResult]:
        """Return the results that arrived when their run was no longer the active one; of all runs if none is named."""
        late = (await self.unit(issue)).late
        late_results = late.get(run_id, []) if run_id else [record for records in late.values() for record in records]
        results = [await self._value(record.result, record.result_blob, WorkResult) for record in late_results]
        return [result for result in results if result is not None]

    async def comment(self, issue: IssueRef, trigger: str) -> Comment | None:
        """Return the comment that is still to be written for a trigger; None if it stands in the issue."""
        queued = (await self.unit(issue)).unwritten.get(trigger)
        return await self._value(queued.comment, queued.comment_blob, Comment) if queued is not None else None

    async def patch(self, issue: IssueRef, run_id: str) -> bytes:
        """Return what a run changed, where its commits were pushed nowhere; empty: it is not known."""
        accepted = (await self.unit(issue)).results.get(run_id)
        patch = await self._value(accepted.patch, accepted.patch_blob, bytes) if accepted is not None else None
        return patch or b""

    # --- commands

    async def open(self, issue: IssueRef, title: str, by: str = "", parent: str = "") -> WorkUnit:
        """Return an issue's work, which begins now if it had not begun, as a part of `parent` if one is given."""
        title = line(title, _TITLE)
        opened = w.WorkOpened(issue_ref=str(issue), title=title, principal=by, parent=parent)
        labels = {"issue": str(issue), **({"parent": parent} if parent else {})}
        patch = HeadPatch(state="todo", title=title, labels=labels)
        if await self.journal.head(stream_of(issue)) is None:
            with suppress(AppendConflictError):  # another process begins it at the same moment
                await self.journal.create(stream_of(issue), STREAM_KIND, opened, patch=patch)
        return await self.unit(issue)

    async def start(
        self,
        issue: IssueRef,
        order: MakeOrder,
        *,
        role: str,
        executor: str,
        by: str = "",
        reason: str = "",
        previous: str = "",
        job: str = "",
        group: str = "",
        read_up_to: str = "",
        instead: bool = False,
    ) -> WorkOrder:
        """Make a new run the active one; return its order.

        `previous` is the run that it follows, with the `reason`; `job` is the one that carries it out. `instead` fences
        the active run in the same transaction. Raise StateError (WORK_CONFLICT) while another run is active, or for an
        issue that is done.
        """

        def decide(unit: WorkUnit) -> UnitChange[WorkOrder]:
            fenced: tuple[k.Payload, ...] = ()
            if unit.active and instead:
                fenced = (w.WorkRunStopped(run_id=unit.active, reason=line(reason, _REASON), by=by),)
            elif unit.active:
                remedy = "`remit work switch` puts another executor in its place, `remit work stop` ends it."
                raise _conflict(f"{issue}: run {unit.active} is active", remedy)
            if unit.state == "done":
                raise _conflict(f"{issue} is done", "`remit work decide` opens it again.")
            today = datetime.fromtimestamp(self.journal.clock.now() / SECOND, tz=UTC).date()
            ordered = order(RunId.draw(today, role, unit.run_numbers + 1))
            ordered.check()
            packed = pack(msgspec.json.encode(ordered))
            detail = line(reason, _REASON) if reason else ""
            payload: dict[str, Any] = {}
            blobs = packed.blobs
            if detail and previous and (fenced or unit.runs[previous].standing == "stopped"):
                comment = comment_on_switch(ordered, executor, previous=previous, reason=detail, read_up_to=read_up_to)
                body = pack(msgspec.json.encode(comment))
                payload = {"trigger": comment.trigger, "comment": body.inline, "comment_blob": body.ref}
                payload["next"], blobs = comment.next, (*blobs, *body.blobs)
            started = w.WorkRunStarted(
                run_id=ordered.run_id,
                role=role,
                executor=executor,
                order=packed.inline,
                order_blob=packed.ref,
                by=by,
                reason=detail,
                previous=previous,
                job=job,
                group=group,
                read_up_to=read_up_to,
                **payload,
            )
            return UnitChange((*fenced, started), ordered, blobs)

        return await self._change(issue, decide)

    async def stop(self, issue: IssueRef, run_id: str, *, reason: str, by: str = "") -> bool:
        """Fence a run: whatever it still sends is archived. Return whether it was the active one."""

        def decide(unit: WorkUnit) -> UnitChange[bool]:
            if unit.active != run_id:
                return UnitChange((), answer=False)
            return UnitChange((w.WorkRunStopped(run_id=run_id, reason=line(reason, _REASON), by=by),), answer=True)

        return await self._change(issue, decide)

    async def accept(self, order: WorkOrder, result: WorkResult, *, adopter: str = "", patch: bytes = b"") -> Verdict:
        """Take the result of the active run and queue its comment, or archive that of any other run.

        `adopter` is the person who takes a result that was archived; `patch` is what changed, if nothing else than this
        process has the commits. Raise UsageError (output_unparseable) for a result
        that names another issue or run.
        """
        result.require_echo(order.issue_ref, order.run_id)
        packed = pack(msgspec.json.encode(result))
        changes = pack(msgspec.json.encode(patch)) if patch else Packed(msgspec.UNSET, msgspec.UNSET, ())

        def decide(unit: WorkUnit) -> UnitChange[Verdict]:
            run = unit.runs.get(order.run_id)
            known = unit.results.get(order.run_id)
            if known is not None and known.result == packed.inline and known.result_blob == packed.ref:
                return UnitChange((), Verdict(accepted=True, state=unit.state, trigger=known.trigger))  # sent twice
            fenced = unit.active != order.run_id
            if run is None or (fenced and not (adopter and not unit.active)):
                code = Code.stale_result_discarded.name
                late = w.WorkResultDiscarded(
                    run_id=order.run_id, code=code, result=packed.inline, result_blob=packed.ref
                )
                return UnitChange((late,), Verdict(accepted=False, state=unit.state, code=code), packed.blobs)
            step = step_after(result, unit.failures)
            read = unit.orders[run.run_id].read_up_to
            comment = comment_on(order, result, step.state, previous=run.previous, read_up_to=read, then=step.next)
            body = pack(msgspec.json.encode(comment))
            accepted = w.WorkResultAccepted(
                run_id=order.run_id,
                state=step.state,
                code=result.result_code,
                result=packed.inline,
                result_blob=packed.ref,
                trigger=comment.trigger,
                comment=body.inline,
                comment_blob=body.ref,
                patch=changes.inline,
                patch_blob=changes.ref,
                by=adopter,
            )
            verdict = Verdict(accepted=True, state=step.state, trigger=comment.trigger)
            return UnitChange((accepted,), verdict, (*packed.blobs, *body.blobs, *changes.blobs))

        return await self._change(order.issue, decide)

    async def refuse(self, issue: IssueRef, run_id: str, code: Code, reason: str) -> Verdict:
        """Record that the active run ended without a result that can be used: a person has to look."""

        def decide(unit: WorkUnit) -> UnitChange[Verdict]:
            if unit.active != run_id:
                return UnitChange((), Verdict(accepted=False, state=unit.state, code=Code.stale_run.name))
            refused = w.WorkResultRefused(run_id=run_id, code=code.name, reason=line(reason, _REASON))
            return UnitChange((refused,), Verdict(accepted=False, state="needs-human", code=code.name))

        return await self._change(issue, decide)

    async def confirm_written(self, issue: IssueRef, trigger: str, reference: str) -> None:
        """Record that the comment of a trigger stands in the issue, if one was queued there."""
        if await self.journal.head(stream_of(issue)) is None:
            return

        def decide(unit: WorkUnit) -> UnitChange[None]:
            if trigger not in unit.unwritten:
                return UnitChange((), None)
            return UnitChange((w.WorkWritten(trigger=trigger, reference=reference),), None)

        await self._change(issue, decide)

    async def move(
        self, issue: IssueRef, state: State, *, reason: str = "", by: str = "", blocked_by: tuple[str, ...] = ()
    ) -> WorkUnit:
        """Put an issue into a state. Raise StateError (WORK_CONFLICT) while a run is active."""

        def decide(unit: WorkUnit) -> UnitChange[WorkUnit]:
            if unit.active:
                raise _conflict(f"{issue}: run {unit.active} is active", "Stop it first: `remit work stop`.")
            if (unit.state, unit.blocked_by) == (state, blocked_by):
                return UnitChange((), unit)
            detail = line(reason, _REASON) if reason else ""
            return UnitChange((w.WorkMoved(state=state, reason=detail, by=by, blocked_by=blocked_by),), unit)

        return await self._change(issue, decide)

    # --- common

    async def _bytes(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """Return a value as it was recorded."""
        return await self.journal.value(inline, ref)

    async def _value(self, inline: OptionalRaw, ref: OptionalRef, kind: type[T]) -> T | None:
        data = await self._bytes(inline, ref)
        return None if data is None else msgspec.json.decode(data, type=kind)

    async def _read(self, issue: IssueRef) -> tuple[StreamHead, WorkUnit]:
        head = await self.journal.head(stream_of(issue))
        if head is None or head.kind != STREAM_KIND:
            raise _not_found(f"nothing is worked on at {issue}")
        events = await self.journal.read(head.stream)
        return head, WorkUnit(event for event in events if event.seq <= head.seq)

    async def _change(self, issue: IssueRef, decide: Callable[[WorkUnit], UnitChange[T]]) -> T:
        """Append what is decided from the newest state; decide again if another process was faster."""
        for _ in range(_ATTEMPTS):
            head, unit = await self._read(issue)
            change = decide(unit)
            if change.payloads:
                writer = self.journal.writer(head.stream, STREAM_KIND, head)
                for payload in change.payloads:
                    unit.add(payload, self.journal.clock.now())
                try:
                    await self.journal.append(
                        writer, *change.payloads, synced=True, patch=_patch(unit), blobs=change.blobs
                    )
                except AppendConflictError:
                    continue
            return change.answer
        raise _conflict(f"{issue}: too many writers at the same moment", "Try again.")


def _patch(unit: WorkUnit) -> HeadPatch:
    labels = {"issue": str(unit.issue), **({"parent": unit.parent} if unit.parent else {})}
    if unit.active:
        run = unit.runs[unit.active]
        labels |= {"run": unit.active, "executor": run.executor, **({"group": run.group} if run.group else {})}
    if unit.blocked_by:
        labels["blocked_by"] = " ".join(unit.blocked_by)
    if unit.unwritten:
        labels["unwritten"] = "yes"
    return HeadPatch(state=unit.state, labels=labels)


def _row(head: StreamHead) -> UnitRow:
    return UnitRow(
        issue_ref=head.labels.get("issue", ""),
        title=head.title,
        state=head.state,
        run_id=head.labels.get("run", ""),
        executor=head.labels.get("executor", ""),
        updated_at=head.updated_at,
        group=head.labels.get("group", ""),
        unwritten="unwritten" in head.labels,
        parent=head.labels.get("parent", ""),
        blocked_by=tuple(head.labels.get("blocked_by", "").split()),
    )


def _conflict(reason: str, remedy: str) -> StateError:
    return StateError(reason, code=Code.WORK_CONFLICT, remedy=remedy)


def _not_found(reason: str) -> NotFoundError:
    return NotFoundError(reason, code=Code.WORK_NOT_FOUND, remedy="`remit work board` lists what is worked on.")
