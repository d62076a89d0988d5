"""Staging: what a command would write, found out by the command itself on a copy of the work that is thrown away.

Nothing is recorded, started or sent. What would be written to issues is shown as the tools of the outbox preview it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, ProviderError, StateError, UsageError
from remit.jobs.state import ENDED
from remit.journal import kinds as k
from remit.operation import ArgumentPlace, operations
from remit.parts.work import kinds as w
from remit.parts.work.references import IssueRef
from remit.parts.work.runs import ProjectRuns, RunsOpening
from remit.parts.work.store import T, UnitChange, WorkStore
from remit.parts.work.unit import MANUAL, WorkUnit, tool_of
from remit.parts.work.workflow import repository_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.journal.journal import Journal
    from remit.journal.kinds.payload import OptionalRaw, OptionalRef
    from remit.parts.work.outbox.provider import Project
    from remit.parts.work.unit import Run
    from remit.parts.work.workflow import Workflow
    from remit.tools.catalog import Catalog

Verb = Literal["issue", "start", "switch", "stop", "result", "submit", "decide", "write"]
"""The operations that can be staged, without `work.`."""


class StagedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a command would do."""

    by: str
    """`journal`, `job`, `git`, or the tool that would write."""
    what: str
    diff: str = ""


class StagedStore(WorkStore):
    """The work units of a journal, with changes that it never gets."""

    def __init__(self, journal: Journal, writes: list[StagedWrite]) -> None:
        super().__init__(journal)
        self._writes = writes
        self._added: dict[IssueRef, list[k.Payload]] = {}
        self._blobs: dict[str, bytes] = {}

    async def open(self, issue: IssueRef, title: str, by: str = "", parent: str = "") -> WorkUnit:
        if issue not in self._added and await self.row(issue) is None:
            self._add(issue, (w.WorkOpened(issue_ref=str(issue), title=title, principal=by, parent=parent),))
        return await self.unit(issue)

    async def unit(self, issue: IssueRef) -> WorkUnit:
        added = self._added.get(issue, [])
        unit = WorkUnit() if added and isinstance(added[0], w.WorkOpened) else await super().unit(issue)
        for payload in added:
            unit.add(payload, self.journal.clock.now())
        return unit

    async def _bytes(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        staged = self._blobs.get(ref.digest) if ref is not msgspec.UNSET else None
        return staged or await super()._bytes(inline, ref)

    async def _change(self, issue: IssueRef, decide: Callable[[WorkUnit], UnitChange[T]]) -> T:
        change = decide(await self.unit(issue))
        self._blobs |= {blob.digest: blob.data for blob in change.blobs}
        self._add(issue, change.payloads)
        return change.answer

    def _add(self, issue: IssueRef, payloads: Iterable[k.Payload]) -> None:
        for payload in payloads:
            self._added.setdefault(issue, []).append(payload)
            self._writes.append(
                StagedWrite(
                    by="journal", what=f"{issue}: {_WORDS[type(payload)].format_map(msgspec.structs.asdict(payload))}"
                )
            )


class StagedRuns(ProjectRuns):
    """Runs that are not started, and end nothing."""

    def __init__(self, opening: RunsOpening, writes: list[StagedWrite], catalog: Catalog, forge: Project) -> None:
        super().__init__(opening._replace(store=StagedStore(opening.store.journal, writes)))
        self._writes = writes
        self._catalog = catalog
        self._forge = forge

    async def carry_out(self, issue: IssueRef, run: Run, workflow: Workflow) -> None:
        for other in (await self.store.unit(issue)).runs.values():
            if other.run_id != run.run_id and other.job:
                await self._end(other, "")
        if run.executor == MANUAL:
            return
        order = await self.store.order(issue, run.run_id)
        from remit.parts.work.executors.provider import shown_order  # noqa: PLC0415 - for who previews a run
        from remit.parts.work.executors.registry import hand_of  # noqa: PLC0415 - as above
        from remit.parts.work.outbox.remote import branch_of  # noqa: PLC0415 - as above

        hand = hand_of(workflow, run.executor)
        shown = shown_order(order, hand, str(repository_of(workflow, self._folder, run.role)))
        self._writes.append(StagedWrite(by=tool_of(run.executor), what=shown.what, diff=shown.diff))
        table = workflow.outbox
        pushes = f"; pushes to {branch_of(table, issue)} of {table.remote}" if table.remote else ""
        pulls = ", with a draft pull request" if pushes and table.pulls and table.backend != "local" else ""
        what = (
            f"Writes the result of {run.run_id} to {issue} as one comment, and the label of its state{pushes}{pulls}."
        )
        self._writes.append(StagedWrite(by="job", what=what))

    async def clean(self, issue: IssueRef, workflow: Workflow) -> None:  # noqa: ARG002 - as it is cleaned
        what = f"Takes away the checkouts of the runs of {issue}, and branches whose commits another one holds."
        self._writes.append(StagedWrite(by="git", what=what))

    async def call(self, tool: str, args: dict[str, Any], by: str, key: str = "") -> dict[str, Any]:  # noqa: ARG002 - the gate's
        if tool == "outbox.get":  # looking is recorded nowhere
            try:
                issue_read = await self._forge()[1].get_issue(IssueRef.parse(args["issue_ref"]))
            except ProviderError as error:
                raise NotFoundError(str(error), code=error.cause or Code.not_found) from error
            issue: dict[str, Any] = msgspec.to_builtins(issue_read)
            return issue
        from remit.tools.provider import Previews, supports  # noqa: PLC0415 - who looks previews nothing

        known = await self._catalog.find(tool)
        shown = None
        if known is not None and supports(known.provider, Previews):
            try:
                shown = await known.provider.preview(tool, args)
            except ProviderError as error:
                raise StateError(f"{tool}: {error}", code=error.cause or Code.TOOL_EXEC_FAILED) from error
        self._writes.append(StagedWrite(by=tool, what=shown.what if shown else "", diff=shown.diff if shown else ""))
        if tool == "outbox.create":
            raise OpenedError
        return {}

    async def _end(self, run: Run, reason: str) -> None:  # noqa: ARG002 - as it is ended
        if await self.standing(run) not in {"", *ENDED}:
            what = f"Cancels {run.job} of {run.run_id}, and waits until no process of it lives."
            self._writes += [write] if (write := StagedWrite(by="job", what=what)) not in self._writes else []


class OpenedError(Exception):
    """Ends a command where an issue would be opened: what follows needs its number."""


async def stage(work: Any, verb: Verb, args: Mapping[str, Any], by: str) -> None:
    """Have a copy of the work do something. Raise what the command raises, and UsageError for other arguments."""
    kind: Any = type(work)
    operation = next(each for each in operations(kind) if each.function.__name__ == verb)
    try:
        call_args = msgspec.convert(args, operation.shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"work.{verb}: {error}", code=Code.WORK_INVALID) from error
    taken = {
        parameter.name: getattr(call_args, parameter.sent)
        for parameter in operation.parameters
        if parameter.source is ArgumentPlace.FIELD
    }
    with suppress(OpenedError):
        await getattr(work, verb)(**taken, by=by)


_WORDS: Final[Mapping[type[k.Payload], str]] = {
    w.WorkOpened: "work on it begins",
    w.WorkRunStarted: "{run_id} by {executor} is the active run",
    w.WorkRunStopped: "{run_id} is fenced: {reason}",
    w.WorkResultAccepted: "the result of {run_id} is accepted, and the state is {state}",
    w.WorkResultDiscarded: "the result of {run_id} is archived: {code}",
    w.WorkMoved: "the state is {state}",
}
