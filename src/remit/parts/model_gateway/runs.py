"""Runs: one token each, which groups the calls of a program; two programs with one session id cannot mix.

A run knows what it holds already: messages and segments of earlier requests, what was spent, and which of its requests
failed, so that one that comes again is known for what it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from remit.canonical import sha256
from remit.gateway.budget import Budget, Spent
from remit.http.guard import digest_of
from remit.ids import new_id
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.journal.kinds import CallUngoverned
from remit.models.thread import KnownPrompts
from remit.parts.model_gateway.canonical import identity
from remit.parts.model_gateway.kinds import BodySegment, ModelGatewayAsked
from remit.parts.model_gateway.request_reader import Reader, RequestReading

if TYPE_CHECKING:
    from remit.gateway.model_request import ModelRequest
    from remit.gateway.outcome import Outcome
    from remit.journal.kinds import Payload
    from remit.models.reply import Watch
    from remit.parts.model_gateway.answers import Answers
    from remit.parts.model_gateway.claims import SpanClaims
    from remit.parts.model_gateway.exchange import Client
    from remit.parts.model_gateway.kinds import ModelGatewayAnswered
    from remit.parts.model_gateway.wires import Provider, Request
    from remit.policy.decision import CallerKind
    from remit.record.client_calls import ClientCalls
    from remit.service.service import Service
    from remit.tools.door import Inside
    from remit.tools.provider import JobFacts

NO_BUDGET: Final = Budget()
_RECENT: Final = 8
"""Requests that a body is compared with, and failures that are remembered."""
_MOST_KNOWN: Final = 20_000
"""Messages that a run remembers to be in the record; then they are recorded again."""


class Ledger(Protocol):
    """Where the calls of a run are recorded, and the gate that they pass."""

    def place(self) -> str:
        """Return a new step."""
        ...

    async def ask(self, request: ModelRequest, watch: Watch) -> Outcome:
        """Ask a model through the gate. Raise JournalError."""
        ...

    async def record(self, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        """Append an event. Raise JournalError."""
        ...

    async def decided(self, confirmation: str) -> bool:
        """Wait until a person has answered."""
        ...


class _Recent(NamedTuple):
    step: str
    digests: tuple[str, ...]


class TokenRun:
    """The calls of one token."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        principal: str,
        kind: CallerKind = "http",
        budget: Budget = NO_BUDGET,
        job: JobFacts | None = None,
        gates: ClientCalls | None = None,
    ) -> None:
        self.ledger = ledger
        self.principal = principal
        self.kind = kind
        self.budget = budget
        self.job = job
        self.gates = gates
        """The calls that gates saw; None: none is looked for."""
        self.answers: Answers | None = None
        """The recorded answers that it is given, instead of those of models."""
        self.providers: Mapping[str, Provider] | None = None
        """The only providers that it may ask, by the prefix of their family; None: those of the settings."""
        self.claims: SpanClaims | None = None
        """The spans that it tells of itself; None: none are taken."""
        self.spent = Spent()
        self.known = KnownPrompts(set(), set())
        self.reader = Reader()
        self.requests = self.refused = 0
        """Requests that came, and of these those that the gate refused."""
        self.governed = 0
        """Calls that ran and that a gate saw."""
        self.ungoverned: list[str] = []
        """Calls that ran and that no gate saw, as tool and identifier."""
        self._wanted: dict[str, tuple[str, str]] = {}
        """Calls that models want, by the provider's identifier: the question, and the tool."""
        self._results: list[tuple[str, tuple[str, ...]]] = []
        """Questions with new results, until it is known which gates saw the calls."""
        self._recent: deque[_Recent] = deque(maxlen=_RECENT)
        self._open: dict[Client, asyncio.Event] = {}
        """Requests under way, and the event that says that one is recorded to its end."""
        self._failed: deque[tuple[str, str]] = deque(maxlen=_RECENT)
        """Requests that failed or were cut, as step and canonical digest, until they come again."""

    @contextmanager
    def under_way(self, client: Client) -> Iterator[None]:
        """Count a request as under way until it is recorded to its end."""
        recorded = self._open[client] = asyncio.Event()
        try:
            yield
        finally:
            del self._open[client]
            recorded.set()

    async def settled(self) -> None:
        """Wait for what answers took that the program has: until then what was reserved for them counts."""
        for client, recorded in [*self._open.items()]:
            if client.ended:
                await recorded.wait()

    async def idle(self) -> None:
        """Wait until no request is under way."""
        while self._open:
            await next(iter(self._open.values())).wait()

    async def record_asked(self, step: str, request: Request, reading: RequestReading | None) -> None:
        """Record a request as it came, before it is judged; what is made durable next makes this durable too."""
        if len(self.known.messages) > _MOST_KNOWN:
            self.known = KnownPrompts(set(), set())
        segments = reading.segments if reading is not None else tuple(filter(None, (request.body,)))
        digests = tuple(map(sha256, segments))
        base, first, last = self._base(digests)
        self._recent.append(_Recent(step, digests))
        fresh = [*zip(digests, segments, strict=True)][first : len(digests) - last]
        payload = ModelGatewayAsked(
            step=step,
            wire=request.route.row.name if request.route.row is not None else "",
            method=request.method,
            route=request.route.path,
            query=request.query,
            sha256=sha256(request.body),
            size=len(request.body),
            base=base,
            first=first,
            last=last,
            segments=tuple(BodySegment(body_blob=BlobRef(digest, len(data), "")) for digest, data in fresh),
            client=request.headers.get("user-agent", "").split(" ")[0][:200],
            conversation=_conversation(request.headers),
            main=reading is not None and bool(reading.tools.specs),
            repeats=self._repeated(request),
            results=reading.results if reading is not None else (),
        )
        self._results += [(step, payload.results)] if payload.results else []
        await self.ledger.record(payload, [Blob(digest, data) for digest, data in fresh])

    def answered(self, answered: ModelGatewayAnswered) -> None:
        """Remember the calls that a model wants."""
        self._wanted.update((call, (answered.step, tool)) for call, tool in answered.wanted.items())

    async def compare(self) -> None:
        """Record the calls whose results came and that no gate saw. Raise JournalError."""
        reported, self._results = self._results, []
        for step, results in reported:
            wanted = {call: self._wanted.pop(call) for call in results if call in self._wanted}
            if not wanted or self.gates is None:
                continue
            unseen = await self.gates.unseen({call: tool for call, (_, tool) in wanted.items()})
            self.governed += len(wanted) - len(unseen)
            for call, tool in unseen.items():
                self.ungoverned.append(f"{tool} {call}")
                asking_step = wanted[call][0]
                await self.ledger.record(CallUngoverned(step=asking_step, call_id=call, tool_name=tool, told_in=step))

    def failed(self, step: str, request: Request) -> None:
        """Remember a request that failed or was cut: if it comes again, it is a repeat."""
        self._failed.append((step, _identity(request)))

    def _base(self, digests: tuple[str, ...]) -> tuple[str, int, int]:
        """Return the recent request that shares most with a body, and how many segments at either end."""
        best = ("", 0, 0)
        for step, others in reversed(self._recent):
            first = _common(digests, others)
            rest = min(len(digests), len(others)) - first
            last = min(rest, _common(digests[::-1], others[::-1]))
            if first + last > best[1] + best[2]:
                best = (step, first, last)
            if first == len(digests):
                break
        return best

    def _repeated(self, request: Request) -> str:
        """Return the failed request that this one is again; a digest is made only if there is one to compare with."""
        if not self._failed:
            return ""
        digest = _identity(request)
        match = next((pair for pair in self._failed if pair[1] == digest), None)
        if match is None:
            return ""
        self._failed.remove(match)
        return match[0]


def _identity(request: Request) -> str:
    """Return what the request is; whether it wants a stream is no part of it: one client asks again without."""
    route = request.route.path.replace(":streamGenerateContent", ":generateContent")
    return identity(request.method, route, request.body, streams=False).digest


def _common(first: Sequence[str], other: Sequence[str]) -> int:
    most = min(len(first), len(other))
    if first[:most] == other[:most]:
        return most
    return next(at for at in range(most) if first[at] != other[at])


_CONVERSATIONS: Final = ("x-claude-code-session-id", "thread-id", "session-id", "x-session-id")


def _conversation(headers: dict[str, str]) -> str:
    return next((headers[name][:200] for name in _CONVERSATIONS if name in headers), "")


class Runs:
    """The runs of this process, by token; a token is kept as its digest."""

    def __init__(self) -> None:
        self._runs: dict[bytes, TokenRun] = {}

    def open(self, token: str, run: TokenRun) -> None:
        """Let a token's calls in as those of a run."""
        self._runs[digest_of(token)] = run

    def find(self, token: str) -> TokenRun | None:
        """Return the run of a token."""
        return self._runs.get(digest_of(token)) if token else None


class InnerLedger:
    """Records within the call that runs the program."""

    def __init__(self, inside: Inside, decided: Any) -> None:
        self._inside = inside
        self._count = 0
        self.decided = decided

    def place(self) -> str:
        self._count += 1
        return self._inside.place(str(self._count))

    async def ask(self, request: ModelRequest, watch: Watch) -> Outcome:
        outcome: Outcome = await self._inside.ask(request, watch)
        return outcome

    async def record(self, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        await self._inside.record(payload, blobs=blobs)


class SessionLedger:
    """Records in a session of a client, which is opened with its first call."""

    def __init__(self, service: Service, decided: Any, principal: str) -> None:
        self._service = service
        self._principal = principal
        self._session = ""
        self._opening = asyncio.Lock()
        self.decided = decided

    def place(self) -> str:
        return new_id("s")

    async def ask(self, request: ModelRequest, watch: Watch) -> Outcome:
        return await self._service.sessions.ask(await self._opened(), request, watch)

    async def record(self, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        await self._service.sessions.record(await self._opened(), payload, blobs)

    async def _opened(self) -> str:
        async with self._opening:
            if not self._session:
                self._session = await self._service.sessions.open(
                    "http", principal=self._principal, client="model gateway"
                )
        return self._session
