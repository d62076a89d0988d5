"""Sessions: calls from outside any job, by one principal through one face.

session/<id>            the process that opened it writes here; it begins with `session_opened`
session/<id>/part/<id>  another process that calls in the session writes here; it begins with the same
call/<id>               a call with a key, or one that asks a person (calls.py), labelled with its session
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NotCanonicalError, NotFoundError, UsageError
from remit.gateway.call import GateRequest
from remit.gateway.outcome import Outcome
from remit.http.access import Access, TokenIdentity
from remit.ids import new_id
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import GateRefused, RequestRelayed, SessionOpened
from remit.journal.kinds import decode as payload_of
from remit.journal.sharded.placement import new_identifier
from remit.large import is_large
from remit.models.reply import unwatched
from remit.operation import Here, operation
from remit.policy.overlay import parse_overlay
from remit.record.heads import CALL, PART, SESSION, stream_named
from remit.record.outcome import OutcomeView, outcome_view
from remit.record.teller import BEGIN_UNSEEN
from remit.record.views import SessionRow, session_row
from remit.redact import line
from remit.service.calls import NOT_LIVE, DirectCalls, LiveCaller, Within
from remit.service.live import AskingCost, LiveCalls, LiveQuestions, LiveReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.gateway.model_request import ModelRequest
    from remit.gateway.pipeline import Gateway
    from remit.journal.event import Blob
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.journal.writer import StreamWriter
    from remit.models.reply import Watch
    from remit.policy.decision import CallerKind

FaceName = Literal["mcp", "http", "python", "cli", "hook"]
_CLIENT: Final = "client"
"""The source of rules that limit a call to some tools, in the ids of rules."""
_MAX_OPEN: Final = 10_000
_MAX_KEY: Final = 255
_MAX_NAME: Final = 200
CALLERS: Final[Mapping[str, CallerKind]] = {"mcp": "mcp", "http": "http"}
"""The kind of caller that a session's face makes; any other face makes a `session`."""


def _own(access: Access, rows: list[SessionRow]) -> list[SessionRow]:
    """The sessions that a token may see: its own, if it is limited to some tools."""
    return [row for row in rows if not access.tools or row.principal == (access.principal or "")]


class Sessions:
    """The sessions of one journal, and the calls in them."""

    def __init__(self, gateway: Gateway, principal: str) -> None:
        self._gateway = gateway
        self._journal = gateway.services.journal
        self._principal = principal
        self._calls = DirectCalls(gateway)
        self._open: OrderedDict[str, _Open] = OrderedDict()

    # --- queries

    @operation("sessions.page", "GET /v1/sessions", "read", "List sessions.", visible=_own)
    async def rows(
        self,
        *,
        limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 20,
        before: Annotated[str, Here("a server lists its newest sessions", "Ask for more of them.")] = "",
    ) -> list[SessionRow]:
        """List sessions of calls from outside any job, newest first.

        `before` continues after a session of an earlier page.
        """
        after = stream_named(before) if before else None
        query = HeadQuery(kind=SESSION, limit=limit, before=after)
        return [session_row(head) for head in await self._journal.heads(query)]

    # --- commands

    async def open(
        self,
        face: FaceName,
        *,
        principal: str = "",
        client: str = "",
        client_version: str = "",
        via: str = "",
        client_session: str = "",
        begin_unseen: bool = False,
        subject: str = "",
        identity: TokenIdentity | None = None,
    ) -> str:
        """Open a session; its identifier. `client` and `client_version` are what the program says of itself.

        With `begin_unseen` a call was the first word of an agent whose hooks tell of a session's begin.

        `identity` is the proof of who came, if an issuer's token is it.

        What is recorded in it can be erased with its `subject`, if it has one.
        """
        opened = SessionOpened(
            session=await new_identifier("ses", SESSION, self._journal.answers),
            face=face,
            principal=principal or self._principal,
            client=client,
            client_version=client_version,
            via=via,
            client_session=client_session,
            begin_unseen=begin_unseen,
            run=self._gateway.services.told_in,
            token_issuer=identity.issuer if identity else "",
            token_subject=identity.subject if identity else "",
            token_key=identity.key if identity else "",
        )
        session = _Open(self._journal, f"{SESSION}/{opened.session}", SESSION, opened, subject)
        await session.writer()
        self._keep(session)
        return opened.session

    async def call(
        self,
        session: str,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        key: str = "",
        timeout_s: float | None = None,
        principal: str | None = None,
        only: tuple[str, ...] = (),
        trace_id: str = "",
        client: Mapping[str, str] | None = None,
        repaired: Mapping[str, int] | None = None,
        live: LiveCaller = NOT_LIVE,
    ) -> OutcomeView:
        """Call a tool through the gate.

        `trace_id` is the W3C trace that the caller names, which is recorded and told to the tool; `client` is what its
        program says of its own trace and conversation, and `repaired` what a reader of its message repaired in the
        arguments: both are recorded.

        With `only`, policy refuses every tool that these names, globs or keys do not cover.

        With an idempotency `key` the call is made once for the session's principal, whichever process or session makes
        it again: the recorded outcome is given, and another call under the key is refused with IDEMPOTENCY_MISMATCH.

        A call that needs a person is `pending`; the same call made again goes on once it is decided.

        Raises NotFoundError (SESSION_NOT_FOUND) if there is no such session, or it is not `principal`'s, and UsageError
        if the key cannot be used.
        """
        if len(key) > _MAX_KEY or not key.isprintable():
            remedy = f"Give up to {_MAX_KEY} printable characters."
            raise UsageError("the idempotency key cannot be used", code=Code.INVALID_INPUT, remedy=remedy)
        entry = await self._found(session, principal)
        call_terms = (entry.opened, tool, args or {}, timeout_s, only)
        request = await asyncio.to_thread(_request, *call_terms) if is_large(args) else _request(*call_terms)
        facts = {"trace_id": trace_id, "client": dict(client or {}), "repaired": dict(repaired or {})}
        request = msgspec.structs.replace(request, **facts)
        outcome = await self._called(entry, request, key, live)
        return outcome_view(outcome)

    async def again(self, identifier: str) -> LiveReport:
        """Make the calls of a job or session again that only read, and compare. Raises NotFoundError."""
        return await LiveCalls(self._journal, self._gateway.services.catalog, self).again(identifier)

    async def asked_in(self, caller: str) -> str:
        """The session that the call of a stream was first made in; empty for any other stream."""
        head = await self._journal.head(caller) if caller.startswith(f"{CALL}/") else None
        return head.labels.get("session", "") if head is not None else ""

    async def asking_cost(self, job: str) -> AskingCost:
        """Say what it costs at most to ask a job's models again. Raises NotFoundError or PayloadErasedError."""
        return await LiveQuestions(self._gateway.services, self).cost(job)

    async def asked_again(self, job: str) -> LiveReport:
        """Ask a job's models again, and compare the answers. Raises NotFoundError or PayloadErasedError."""
        return await LiveQuestions(self._gateway.services, self).again(job)

    async def ask(self, session: str, request: ModelRequest, watch: Watch = unwatched) -> Outcome:
        """Ask a model through the gate, once; `watch` is told of pieces of the answer. Raises NotFoundError."""
        return await self._gateway.ask(request, await (await self._found(session, None)).writer(), watch)

    async def record(self, session: str, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        """Append an event to a session. Raises NotFoundError."""
        await self._journal.append(
            await (await self._found(session, None)).writer(), payload, synced=False, blobs=blobs
        )

    async def relayed(self, session: str, provider_id: str, method: str, target: str, error: str) -> None:
        """Record a request that was passed on to an MCP server as it was. Raises NotFoundError."""
        relayed = RequestRelayed(step=new_id("s"), provider_id=provider_id, method=method, target=target, error=error)
        await self.record(session, relayed)

    # --- common

    async def _called(self, session: _Open, request: GateRequest, key: str, live: LiveCaller) -> Outcome:
        if key and request.hash:
            asks = msgspec.structs.replace(request, asks=True)
            outcome = await self._calls.under_key(Within(session.opened.session, session.writer), asks, key, live)
            if outcome.code is Code.IDEMPOTENCY_MISMATCH:
                await self._refuse(session, request, outcome)
            return outcome
        outcome = await self._gateway.call(request, await session.writer(), live.progress, live.peer)
        if outcome.status == "pending":
            asks = msgspec.structs.replace(request, asks=True)
            return await self._calls.asking(Within(session.opened.session, session.writer), asks, live)
        return outcome

    async def _refuse(self, session: _Open, request: GateRequest, outcome: Outcome) -> None:
        refusal = GateRefused(
            step=request.step,
            tool_name=line(request.tool, _MAX_NAME),
            code=Code.IDEMPOTENCY_MISMATCH.name,
            reason=outcome.reason,
            remedy=outcome.remedy,
            stage="idempotency",
            arguments_hash=request.hash,
            principal=request.principal,
        )
        await self._journal.append(await session.writer(), refusal, synced=True)

    async def _found(self, session: str, principal: str | None) -> _Open:
        entry = self._open.get(session)
        if entry is None:
            entry = await self._joined(session)
        if principal is not None and principal != entry.opened.principal:
            raise _no_session(session)
        self._open.move_to_end(session)
        return entry

    async def _joined(self, session: str) -> _Open:
        """A session that another process opened, or that this one has not used for long."""
        stream = f"{SESSION}/{session}"
        events = await self._journal.page(stream) if session else []
        opened = payload_of(events[0].kind, events[0].data) if events else None
        if not isinstance(opened, SessionOpened):
            raise _no_session(session)
        return self._keep(_Open(self._journal, f"{stream}/part/{new_id('part')}", PART, opened))

    def _keep(self, session: _Open) -> _Open:
        self._open[session.opened.session] = session
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)
        return session


class _Open:
    """A session that this process calls in: the stream that it alone writes."""

    def __init__(self, journal: Journal, stream: str, kind: str, opened: SessionOpened, subject: str = "") -> None:
        self.opened = opened
        self._subject = subject
        self._journal = journal
        self._stream = stream
        self._kind = kind
        self._writer: StreamWriter | None = None
        self._opening = asyncio.Lock()

    async def writer(self) -> StreamWriter:
        """The writer of the stream, which begins with the caller."""
        writer = self._writer
        if writer is None or writer.failure is not None:
            async with self._opening:
                writer = await self._begun()
        return writer

    async def _begun(self) -> StreamWriter:
        """Begin the stream, or continue it after the storage failed."""
        before = self._writer
        if before is not None and before.failure is None:
            return before  # another call was faster
        head = None if before is None else await self._journal.head(self._stream)
        writer = self._writer = self._journal.writer(self._stream, self._kind, head)
        if head is None:
            opened = self.opened
            title = f"{opened.client or f'a {opened.face} client'} as {opened.principal}"
            labels = {"face": opened.face, "principal": opened.principal}
            if opened.client_session:
                labels["client_session"] = opened.client_session
            if opened.run:
                labels["run"] = opened.run
            if opened.begin_unseen:
                title, labels["begin"] = f"{title}, {BEGIN_UNSEEN}", "unseen"
            patch = HeadPatch(state="open", title=title, labels=labels, subject=self._subject)
            await self._journal.append(writer, opened, synced=True, patch=patch)
        return writer


def _request(
    opened: SessionOpened, tool: str, args: dict[str, Any], timeout_s: float | None, only: tuple[str, ...]
) -> GateRequest:
    try:
        arguments_hash = digest(args)
    except (NotCanonicalError, RuntimeError):  # RuntimeError: they changed meanwhile
        arguments_hash = ""  # the gateway refuses it
    return GateRequest(
        tool=tool,
        args=args,
        step=new_id("s"),
        principal=opened.principal,
        caller=CALLERS.get(opened.face, "session"),
        within=f"{SESSION}/{opened.session}",
        timeout_s=timeout_s,
        asks=False,
        leaves=True,
        overlays=(parse_overlay(_CLIENT, tools=only),) if only else (),
        hash=arguments_hash,
    )


def _no_session(session: str) -> NotFoundError:
    return NotFoundError(f"there is no session {session!r:.80}", code=Code.SESSION_NOT_FOUND, remedy="Open one.")
