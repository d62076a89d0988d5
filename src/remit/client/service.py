"""The service of a server: the nouns of `remit.service`, each of whose operations is one request.

What is declared of a noun's method makes its request (`remit.client.twin`); here and in the files beside stand the few
that need more than their request.

Questions to people behind a server, and the approvals that it remembers.

Jobs behind a server.

A server's records of jobs and sessions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from remit.api.routes.confirmations import MOST, DecideBody, PendingQuery
from remit.api.routes.history import EventQuery, PieceView, ReplayQuery
from remit.api.routes.history import Replayed as ReplayAnswer
from remit.api.routes.jobs import JobPage, JobQuery, StartBody, WaitQuery
from remit.api.routes.tools import ExplainBody
from remit.canonical import sha256
from remit.capability import Noun, resolve
from remit.client.connection import FAILURES, MAX_ANSWER, ServerConnection, only_oneself
from remit.client.twin import Twin, twin
from remit.codes import Code
from remit.errors import RemitError, ServerError, UsageError
from remit.gateway.proof import ProofKind
from remit.ids import new_id
from remit.jobs.plans.plan import Plan, bind_inputs, task_graph
from remit.jobs.replay import ReplayReport, ReplayStop
from remit.journal.event import Event
from remit.journal.labels import Bound, Conditions
from remit.jsonrpc.stream import EventReader, LineTooLongError
from remit.models.reply import Delta
from remit.models.tail import AnswerPiece
from remit.policy.decision import CallerKind
from remit.policy.explain import Explanation
from remit.record.heads import stream_named
from remit.record.search import FoundPage, JobSearch
from remit.record.usage import Usage
from remit.record.views import ConfirmationView, JobRow, JobView, VerifyReport
from remit.redact import line
from remit.service.approvals import Approvals
from remit.service.artifacts import Artifacts
from remit.service.confirmations import ConfirmationsNoun, QuestionFilter
from remit.service.health import Health
from remit.service.jobs import Jobs
from remit.service.many import Replayed, replayed_row
from remit.service.mcp import McpServers
from remit.service.options import Options
from remit.service.policy import PolicyRules
from remit.service.recipes import KnownRecipes
from remit.service.requests import Requests
from remit.service.saved_views import SavedViews
from remit.service.service import Service
from remit.service.sessions import Sessions
from remit.service.steps import Steps
from remit.service.streams import Streams
from remit.service.tools import ToolsNoun
from remit.service.workers import WorkersNoun
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import nouns_of


class RemoteConfirmations(Twin, ConfirmationsNoun):
    """The questions of a server."""

    async def pending(
        self,
        job: str | None = None,
        *,
        only: QuestionFilter | None = None,
        limit: int | None = None,
        after: str = "",
        described: bool = True,  # noqa: ARG002 - the server describes them all
    ) -> list[ConfirmationView]:
        wanted = only or QuestionFilter()
        confirmations: list[ConfirmationView] = []
        while limit is None or len(confirmations) < limit:
            most = MOST if limit is None else min(limit - len(confirmations), MOST)
            query = PendingQuery(
                job=job or "",
                tool=wanted.tool,
                principal=wanted.principal,
                recipe=wanted.recipe,
                label=tuple(f"{key}={value}" for key, value in wanted.labels.items()),
                limit=most,
                after=after,
            )
            page: list[ConfirmationView] = await self._connection.ask("confirmations.pending", query=query)
            confirmations += page
            if len(page) < most:
                break
            after = page[-1].confirmation
        return confirmations

    async def decide(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",  # noqa: ARG002 - the server knows the token that brings the answer
        sign: Path | None = None,
    ) -> ConfirmationView:
        only_oneself(by)
        _unsigned(sign)
        if digest is None:
            view = await self.view(reference)
            reference, digest = view.confirmation, view.digest
        body = DecideBody(digest=digest, reason=reason)
        decided: ConfirmationView = await self._connection.ask(f"confirmations.{decision}", reference, body=body)
        return decided


def _unsigned(key: Path | None) -> None:
    if key is not None:
        remedy = "The server identifies you by your token: omit --sign."
        raise UsageError("answers to a server are not signed", remedy=remedy)


_PAGE: Final = 1_000
REPLAY_S: Final = 600.0
"""Seconds that a replay may take."""


class RemoteJobs(Twin, Jobs):
    """The jobs of a server."""

    # --- queries

    async def find(self, reference: str) -> str:
        return (await self.row(reference)).job

    async def rows(
        self,
        states: tuple[str, ...] = (),
        *,
        labels: dict[str, str] | None = None,
        bounds: tuple[Bound, ...] = (),
        limit: int = 20,
        before: str | None = None,
        text: str = "",
        since: int = 0,
    ) -> list[JobRow]:
        wanted = Conditions(labels or {}, bounds).texts
        rows: list[JobRow] = []
        while len(rows) < limit:
            most = min(limit - len(rows), _PAGE)
            query = JobQuery(state=states, label=wanted, limit=most, before=before or "", text=text, since=since)
            page: JobPage = await self._connection.ask("jobs.page", query=query)
            rows += page.items
            before = page.next
            if before is None:
                break
        return rows

    async def search(self, wanted: JobSearch) -> FoundPage:
        query = JobQuery(
            state=wanted.states,
            label=Conditions(wanted.labels, wanted.bounds).texts,
            since=wanted.since,
            until=wanted.until,
            text=wanted.text,
            principal=wanted.principal,
            before=wanted.before,
            limit=min(wanted.limit, _PAGE),
        )
        page: JobPage = await self._connection.ask("jobs.page", query=query)
        return FoundPage(rows=page.items, next=page.next)

    async def row(self, job: str) -> JobRow:
        row: JobRow = await self._connection.ask("jobs.row", job, query=WaitQuery())
        return row

    async def view(self, job: str) -> JobView:
        view: JobView = await self._connection.ask("jobs.view", job, query=WaitQuery())
        return view

    async def result(self, job: str) -> Any:
        return (await self.view(job)).result

    async def replay(self, job: str, *, anyway: bool = False, stop: ReplayStop | None = None) -> ReplayReport:
        """Have a job's recipe run again on its record alone, with the code of the server.

        Raises UsageError (LOCAL_ONLY) for a `stop`: the recipe runs on the server.
        """
        if stop is not None:
            reason = "a replay stops only where the recipe runs"
            raise UsageError(reason, code=Code.LOCAL_ONLY, remedy="Run it on the machine with the journal.")
        query = ReplayQuery(anyway=anyway)
        answer: ReplayAnswer = await self._connection.ask("jobs.replay", job, query=query, held_s=REPLAY_S)
        return answer.report

    async def replays(
        self,
        states: tuple[str, ...] = (),
        *,
        since: int = 0,
        labels: Mapping[str, str] | None = None,
        anyway: bool = False,
    ) -> AsyncIterator[Replayed]:
        before: str | None = None
        while rows := await self.rows(states, labels=dict(labels or {}), limit=_PAGE, before=before):
            for row in rows:
                if row.created_at >= since:
                    yield await replayed_row(partial(self.replay, anyway=anyway), row.job, row.name, row.state)
            before = rows[-1].job
            if rows[-1].created_at < since:
                return

    # --- commands

    async def start_named(self, name: str, values: Mapping[str, Any], options: Options | None = None) -> str:
        return await self._start(options, recipe=name, input=dict(values))

    async def start_plan(self, plan: Plan, values: Mapping[str, Any], options: Options | None = None) -> str:
        bind_inputs(plan, values)  # every misfit is named here, in lines of its own
        return await self._start(options, plan=task_graph(plan), input=dict(values))

    async def _start(self, options: Options | None, **what: Any) -> str:
        options = options or Options()
        only_oneself(options.principal)
        body = StartBody.of(options, delay_s=options.delay_s, subject=options.subject, **what)
        try:
            # The key lets a request whose answer was lost be sent again.
            row: JobRow = await self._connection.ask("jobs.start", query=WaitQuery(), body=body, key=new_id("start"))
        except TypeError as error:
            reason = f"the input cannot be sent: {error}"
            raise UsageError(reason, code=Code.INVALID_INPUT, remedy="Send plain JSON values.") from error
        return row.job


_VERIFY_S: Final = 600.0


class _Page(msgspec.Struct, frozen=True):
    """A page of events with their recorded bytes."""

    items: list[Sent]
    next: int | None


class RemoteStreams(Twin, Streams):
    """The streams of a server."""

    def name(self, identifier: str) -> str:
        return stream_named(identifier)

    async def events(self, stream: str, after: int = 0) -> list[Event]:
        events: list[Event] = []
        position: int | None = after
        while position is not None:
            query = EventQuery(after=position, limit=_PAGE)
            page: _Page = await self._connection.ask("jobs.events", _identifier(stream), query=query, answer=_Page)
            events += [item.event(stream) for item in page.items]
            position = page.next
        return events

    def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        return follow(self._connection, stream, _identifier(stream), after)

    def said(self, identifier: str) -> AsyncIterator[AnswerPiece]:
        return listen(self._connection, identifier)

    async def verify(
        self, identifier: str | None = None, *, notes: str = "", keys: tuple[str, ...] = (), stamp_roots: str = ""
    ) -> VerifyReport:
        """Check the chains of a job or session. Raise UsageError (LOCAL_ONLY) for the whole journal."""
        if identifier is None or notes or keys or stamp_roots:
            reason = "a whole journal, and checkpoints, can only be checked on its own machine"
            raise UsageError(
                reason, code=Code.LOCAL_ONLY, remedy="Name a job, or run the check on the server's machine."
            )
        report: VerifyReport = await self._connection.ask("jobs.verify", identifier, held_s=_VERIFY_S)
        return report


def _identifier(stream: str) -> str:
    return stream.partition("/")[2]


_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_ATTEMPTS: Final = 12
"""Attempts in a row that bring no event, before the server is given up: half a minute."""


class Sent(msgspec.Struct, frozen=True):
    """An event as a server sends it."""

    seq: int
    kind: str
    at: int
    data: msgspec.Raw
    hash: str

    def event(self, stream: str) -> Event:
        """The event as the journal has it."""
        return Event(stream, self.seq, self.kind, self.at, bytes(self.data), bytes.fromhex(self.hash))


async def follow(connection: ServerConnection, stream: str, identifier: str, after: int) -> AsyncIterator[Event]:
    """A stream's events after a place, then each new one until the stream is closed.

    Raise NotFoundError, or ServerError once the server stays away.
    """
    last, failed = after, 0
    while True:
        try:
            async for event in _once(connection, stream, identifier, last):
                last, failed = event.seq, 0
                yield event
        except (RemitError, *FAILURES) as error:
            failed += 1
            passing = not isinstance(error, RemitError) or error.code.retryable
            if not passing or failed >= _ATTEMPTS:
                raise (error if isinstance(error, RemitError) else _lost(connection, error)) from error
        else:
            return
        await connection.clock.sleep(min(_FIRST_PAUSE_S * 2 ** (failed - 1), _LONGEST_PAUSE_S))


async def _once(connection: ServerConnection, stream: str, identifier: str, after: int) -> AsyncIterator[Event]:
    cut = EventReader(MAX_ANSWER)
    async with connection.stream("jobs.follow", identifier, after=after) as chunks:
        async for chunk in chunks:
            try:
                sent = [msgspec.json.decode(each.data, type=Sent).event(stream) for each in cut.feed(chunk)]
            except (msgspec.DecodeError, LineTooLongError, ValueError) as error:
                reason = f"an event of {identifier} cannot be read: {line(str(error))}"
                raise ServerError(reason, code=Code.SERVER_ANSWER_INVALID) from error
            for event in sent:
                yield event


async def listen(connection: ServerConnection, identifier: str) -> AsyncIterator[AnswerPiece]:
    """Give what models say to a job while they say it; a connection that fails ends it, for nothing depends on it.

    Raise NotFoundError, or ServerError if the server refuses.
    """
    cut = EventReader(MAX_ANSWER)
    try:
        async with connection.stream("jobs.said", identifier, after=0) as chunks:
            async for chunk in chunks:
                for each in cut.feed(chunk):
                    view = msgspec.json.decode(each.data, type=PieceView)
                    delta = Delta(msgspec.convert(each.kind, Literal["text", "reasoning", "call"]), view.text)
                    yield AnswerPiece(view.step, view.offset, delta)
    except (msgspec.DecodeError, LineTooLongError, ValueError) as error:
        reason = f"a piece of {identifier} cannot be read: {line(str(error))}"
        raise ServerError(reason, code=Code.SERVER_ANSWER_INVALID) from error
    except FAILURES:
        return


def _lost(connection: ServerConnection, error: BaseException) -> ServerError:
    reason = f"{connection.url}: {line(str(error)) or type(error).__name__}"
    return ServerError(reason, remedy="Check that `remit serve` runs there; what was recorded is not lost.")


class RemoteArtifacts(Twin, Artifacts):
    """The artifacts of a server's jobs."""

    async def read(self, job: str, digest: str) -> bytes:
        data: bytes = await self._connection.ask("artifacts.read", job, digest)
        if sha256(data) != digest:
            reason = f"the received bytes of {digest} have another digest"
            raise ServerError(reason, code=Code.SERVER_ANSWER_INVALID, remedy="Ask again.")
        return data


class RemotePolicy(Twin, PolicyRules):
    """The rules of a server."""

    async def explain(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        principal: str,
        kind: CallerKind = "session",
        recipe: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> Explanation:
        body = ExplainBody(tool=tool, args=args, principal=principal, kind=kind, recipe=recipe, given=dict(given or {}))
        explanation: Explanation = await self._connection.ask("policy.explain", body=body)
        return explanation


def _twin_of(noun: Noun, kind: type, connection: ServerConnection) -> Any:
    return resolve(noun.remote)(connection) if noun.remote else twin(kind, connection)


def service_at(connection: ServerConnection) -> Service:
    """The service at the other end of a connection. What is not declared is refused with LOCAL_ONLY."""
    return Service(
        jobs=RemoteJobs(connection),
        steps=twin(Steps, connection),
        artifacts=RemoteArtifacts(connection),
        streams=RemoteStreams(connection),
        sessions=twin(Sessions, connection),
        confirmations=RemoteConfirmations(connection),
        approvals=twin(Approvals, connection),
        policy=RemotePolicy(connection),
        tools=twin(ToolsNoun, connection),
        servers=twin(McpServers, connection),
        recipes=twin(KnownRecipes, connection),
        workers=twin(WorkersNoun, connection),
        usage=twin(Usage, connection),
        health=twin(Health, connection),
        requests=twin(Requests, connection),
        saved_views=twin(SavedViews, connection),
        of_parts={noun.name: _twin_of(noun, kind, connection) for noun, kind in nouns_of(FIRST_PARTY)},
    )
