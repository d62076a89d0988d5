"""What a face may ask. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError
from remit.gateway.confirmations import KIND as CONFIRMATION
from remit.gateway.confirmations import Confirmation
from remit.gateway.readiness import Snapshot
from remit.ids import trace_id
from remit.jobs.replay import ReplayReport, replay
from remit.jobs.state import KIND, History, stream_of
from remit.journal.event import Event, Head, HeadQuery
from remit.journal.kinds import JobCompleted, JobFailed, decode
from remit.policy.decision import Caller, CallerKind, Query
from remit.policy.explain import Explanation, explain
from remit.service.steps import open_waits, step_rows
from remit.service.views import (
    ConfirmationView,
    JobRow,
    JobView,
    SessionRow,
    ToolView,
    VerifyReport,
    job_row,
    session_row,
)
from remit.tools.catalog import ResolveError
from remit.trace.narrative import Narrative, narrate

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.jobs.program import Programs
    from remit.jobs.recipe import Recipes
    from remit.policy.remembered import Remembered
    from remit.tools.catalog import Tool

_RECENT = 10_000
SESSION = "session"
"""The kind of sessions' streams."""


class Queries:
    """Everything that only looks, for every face."""

    def __init__(self, services: Services, programs: Programs) -> None:
        """Look at one journal and one catalog."""
        self._services = services
        self._journal = services.journal
        self._programs = programs

    # --- jobs

    async def find(self, reference: str) -> str:
        """A job by identifier, by an ending of it that fits only one, or `last`; or a session by identifier.

        Raises NotFoundError.
        """
        if reference == "last":
            newest = await self._journal.heads(HeadQuery(kind=KIND, limit=1))
            if newest:
                return job_row(newest[0]).job
            raise NotFoundError("there is no job yet", remedy="Start one with `remit run`.")
        if await self._journal.head(_stream(reference)) is not None:
            return reference
        heads = await self._journal.heads(HeadQuery(kind=KIND, limit=_RECENT)) if reference else []
        found = [head for head in heads if head.stream.endswith(reference)]
        if len(found) != 1:
            why = f"fits {len(found)} jobs" if found else "names no job"
            raise NotFoundError(f"{reference!r} {why}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
        return job_row(found[0]).job

    async def jobs(
        self,
        states: tuple[str, ...] = (),
        *,
        labels: dict[str, str] | None = None,
        limit: int = 20,
        before: str | None = None,
    ) -> list[JobRow]:
        """Jobs, newest first; `before` continues after a job of an earlier page."""
        after = stream_of(before) if before else None
        query = HeadQuery(kind=KIND, states=states, labels=labels or {}, limit=limit, before=after)
        return [job_row(head) for head in await self._journal.heads(query)]

    async def row(self, job: str) -> JobRow:
        """A job's row. Raises NotFoundError."""
        return job_row(await self._head(job))

    async def job(self, job: str) -> JobView:
        """One job, whole, as it is at one moment. Raises NotFoundError."""
        head = await self._head(job)
        history = await self.history(job, head.seq)
        created, end = history.created, history.end
        return JobView(
            row=job_row(head),
            kind=created.kind if created else "",
            principal=created.principal if created else "",
            execution_version=created.execution_version if created else "",
            input=await self._value(created.input, created.input_blob) if created else None,
            result=await self._value(end.result, end.result_blob) if isinstance(end, JobCompleted) else None,
            error=msgspec.to_builtins(end.error) if isinstance(end, JobFailed) else None,
            steps=step_rows(history),
            waits=open_waits(history),
            events=head.seq,
            trace_id=trace_id(job),
        )

    async def result(self, job: str) -> Any:
        """What a completed job returned; None for any other."""
        # Nothing comes after the end.
        newest = await self._journal.read(stream_of(job), max((await self._head(job)).seq - 1, 0))
        end = decode(newest[-1].kind, newest[-1].data) if newest else None
        return await self._value(end.result, end.result_blob) if isinstance(end, JobCompleted) else None

    async def history(self, job: str, events: int | None = None) -> History:
        """A job's events, folded: all, or the first so many, where what came since belongs to another state."""
        return History((await self._journal.read(stream_of(job)))[:events])

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        """A stream's events."""
        return await self._journal.read(stream, after)

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """A stream's events, then each new one until the stream is closed."""
        return self._journal.follow(stream, after)

    async def narrative(self, job: str) -> Narrative:
        """The story of a job or session, with who allowed what. Raises NotFoundError."""
        await self._head(job)
        stream = _stream(job)
        # Before its questions: a call that ran is never told as one that nobody has allowed yet.
        events = await self._journal.read(stream)
        query = HeadQuery(kind=CONFIRMATION, prefix=f"{stream}/", limit=_RECENT)
        asked = {
            head.labels.get("id", head.stream): await self._journal.read(head.stream)
            for head in await self._journal.heads(query)
        }
        return narrate(events, asked)

    def stream(self, identifier: str) -> str:
        """The stream of a job or session."""
        return _stream(identifier)

    async def replay(self, job: str) -> ReplayReport:
        """Run a job's recipe again on its record alone. Raises NotFoundError where the recipe is not known here."""
        await self._head(job)
        history = await self.history(job)
        program = await self._programs.load(history)
        return await replay(self._journal, history, program, self._services.catalog, job)

    async def verify(self, job: str | None = None) -> VerifyReport:
        """Check the chains of a job or session and of all that belongs to it, or of the whole journal."""
        if job is not None:
            await self._head(job)
        streams = events = 0
        problems: list[str] = []
        async for head in self._heads(_stream(job) if job else ""):
            streams += 1
            try:
                events += await self._journal.verify(head.stream)
            except ChainBrokenError as error:
                problems.append(error.message)
        return VerifyReport(streams=streams, events=events, problems=tuple(problems))

    # --- sessions

    async def sessions(self, *, limit: int = 20) -> list[SessionRow]:
        """Sessions of calls from outside any job, newest first."""
        return [session_row(head) for head in await self._journal.heads(HeadQuery(kind=SESSION, limit=limit))]

    # --- people and tools

    async def confirmations(self, job: str | None = None) -> list[ConfirmationView]:
        """Open questions, oldest first; not those of jobs that have ended meanwhile."""
        pending = await self._services.confirmations.pending(stream_of(job) if job else None)
        callers = {found.caller: await self._journal.head(found.caller) for found in pending}
        ended = {caller for caller, head in callers.items() if head is not None and head.closed}
        return [confirmation_view(found) for found in pending if found.caller not in ended]

    async def confirmation(self, reference: str) -> ConfirmationView:
        """One question. Raises NotFoundError."""
        return confirmation_view(await self._services.confirmations.find(reference))

    async def readiness(self) -> Snapshot:
        """Which dependencies of tools are ready."""
        return await self._services.readiness.snapshot()

    async def remembered(self) -> list[Remembered]:
        """Remembered approvals that hold now."""
        return await self._services.remembered.active()

    async def explain(
        self, tool: str, args: dict[str, Any], *, principal: str, kind: CallerKind = "session", recipe: str = ""
    ) -> Explanation:
        """What policy says to a call, and what part every rule has in that."""
        try:
            found, args = await self._services.catalog.resolve(tool, args)
        except ResolveError:
            known = self._services.catalog.known(tool)
        else:
            known = found
        query = Query(
            tool=known.meta if known else None,
            key=known.key if known else tool,
            args=args,
            caller=Caller(principal=principal, kind=kind, recipe=recipe),
            contract_hash=known.contract_hash if known else "",
            now=self._journal.clock.now(),
        )
        return explain(self._services.policy, query, await self._services.remembered.active())

    async def tools(self) -> list[ToolView]:
        """The catalog, by name."""
        return [tool_view(tool) for tool in sorted(await self._services.catalog.tools(), key=lambda t: t.meta.name)]

    async def tool(self, name: str) -> ToolView:
        """One tool by its full name, wire name, or a key that covers no other; also a quarantined one.

        Raises ResolveError.
        """
        catalog = self._services.catalog
        known = await catalog.find(name)
        return tool_view(known or (await catalog.resolve(name, {}))[0])

    async def tool_failures(self) -> dict[str, str]:
        """Why tools are missing, by the provider that could not be listed."""
        await self._services.catalog.tools()
        return dict(self._services.catalog.failures)

    @property
    def recipes(self) -> Recipes:
        """The recipes this process knows."""
        return self._programs.recipes

    # --- common

    async def _head(self, job: str) -> Head:
        head = await self._journal.head(_stream(job))
        if head is None:
            raise NotFoundError(f"no job {job}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
        return head

    async def _heads(self, stream: str) -> AsyncIterator[Head]:
        if stream:
            own = await self._journal.head(stream)
            if own is not None:
                yield own
        prefix, before = f"{stream}/" if stream else "", None
        while page := await self._journal.heads(HeadQuery(prefix=prefix, before=before, limit=500)):
            for head in page:
                yield head
            before = page[-1].stream

    async def _value(self, inline: Any, ref: Any) -> Any:
        encoded = await self._journal.value(inline, ref)
        return msgspec.json.decode(encoded) if encoded is not None else None


def confirmation_view(found: Confirmation) -> ConfirmationView:
    """A confirmation as faces show it."""
    request = found.request
    return ConfirmationView(
        confirmation=found.id,
        state=found.state,
        caller=found.caller,
        step=request.step,
        tool=request.tool_name,
        question=request.question,
        args=found.args,
        digest=request.digest,
        principal=request.principal,
        approvals=request.approvals,
        approved_by=found.approved_by,
        approvers=request.approvers,
        rule_id=request.rule_id,
        edited_from=request.edited_from,
        expires_at=request.expires_at,
    )


def tool_view(tool: Tool) -> ToolView:
    """A tool as faces show it."""
    meta = tool.meta
    return ToolView(
        name=meta.name,
        key=tool.key,
        wire_name=tool.wire_name,
        provider_id=meta.provider_id,
        description=meta.description,
        capability_level=meta.capability_level.name,
        side_effects=meta.side_effects,
        idempotent=meta.idempotent,
        requires_confirm=meta.requires_confirm,
        timeout_ms=meta.timeout_ms,
        version=meta.version,
        contract_hash=tool.contract_hash,
        input_schema=meta.input_schema,
        output_schema=meta.output_schema,
        quarantined=tool.quarantined or "",
        remedy=tool.remedy,
    )


def _stream(identifier: str) -> str:
    """The stream of a job, or of a session."""
    return f"{SESSION}/{identifier}" if identifier.startswith("ses_") else stream_of(identifier)
