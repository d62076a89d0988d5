"""The part of a server that answers at /openai, /anthropic and /gemini: each request a model call of the gate.

    token → read → record what came → gate (policy, approval, limits, budget, intent) → provider → program
                                                                                       → record what came back

A refusal has the form of the wire it answers, and the word for which every client ends at once and shows ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway.model_request import ModelRequest
from remit.gateway.outcome import LIMITED, Outcome
from remit.http.problem import HttpProblem
from remit.http.router import ABORT, REQUEST
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.models.faults import ModelFault
from remit.models.message import Message as ModelMessage
from remit.models.message import Opaque
from remit.models.names import ModelName
from remit.models.prompt import NO_TOOLS, Ask, Sampling
from remit.models.reply import unwatched
from remit.models.thread import EMPTY
from remit.parts.model_gateway.exchange import Client, Keeping, PassedModel, Upstream, http_client, whole_body
from remit.parts.model_gateway.request_reader import RequestReading, UnreadableError
from remit.parts.model_gateway.runs import TokenRun
from remit.parts.model_gateway.wires import FAMILIES, Family, Provider, Request, refusal_of, route_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from remit.clock import Clock
    from remit.parts.model_gateway.answers import Answers
    from remit.parts.model_gateway.kinds import ModelGatewayAnswered
    from remit.parts.model_gateway.settings import ModelGatewaySettings

Admit = Callable[[str, Mapping[str, str]], Awaitable[TokenRun]]
"""Returns the run of a token, by it and the headers of its request. Raises Refusal."""
_UNAVAILABLE: Final = HTTPStatus.SERVICE_UNAVAILABLE
_FAULTS: Final = {Code.MODEL_TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT, Code.MODEL_REJECTED: HTTPStatus.BAD_REQUEST}
_BLOCK: Final = b"\n\n"
_OWN: Final = "rmt_"
"""The beginning of Remit's own tokens."""


class ModelGateway:
    """The wires, as a part of a server (`remit.http.router.ServerPart`).

    `providers` go by the prefix of their family.
    """

    def __init__(
        self,
        admit: Admit,
        providers: Mapping[str, Provider],
        settings: ModelGatewaySettings,
        clock: Clock,
        *,
        patience_s: float,
    ) -> None:
        self._admit = admit
        self._providers = providers
        self._settings = settings
        self._clock = clock
        self._patience_s = patience_s
        self._client: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with http_client(self._patience_s) as self._client:
            yield

    def close_streams(self) -> None:
        """Leave answers their grace: each is a call under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = route_of(scope["method"], scope["path"])
        if route is None:
            raise HttpProblem(Code.PATH_UNKNOWN)
        headers: dict[str, str] = scope[REQUEST].headers
        try:
            if "upgrade" in headers:
                raise _Refused(HTTPStatus.UPGRADE_REQUIRED, "this wire is served by POST", Code.INVALID_INPUT.name)
            token, query = _token(headers, scope["query_string"].decode("latin-1"))
            run = await self._admitted(token, headers)
            body = await self._body(receive)
            client = Client(send, receive)
            request = Request(scope["method"], route, query, headers, body)
            with run.under_way(client):
                try:
                    whole = await self._pass(request, run, client, "" if token.startswith(_OWN) else token)
                finally:
                    client.leave()
                    await run.compare()
        except _Refused as refusal:
            await refusal.say(send, route.family)
            return
        if not whole:
            await _abort(scope, client)

    async def _admitted(self, token: str, headers: Mapping[str, str]) -> TokenRun:
        try:
            return await self._admit(token, headers)
        except HttpProblem as problem:
            if problem.status not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
                raise
            raise _Refused(HTTPStatus.UNAUTHORIZED, f"{problem.detail} {problem.remedy}", problem.name) from problem

    async def _body(self, receive: Receive) -> bytes:
        try:
            return await whole_body(receive, self._settings.request_bytes, "model_gateway.request_bytes")
        except HttpProblem as problem:
            raise _Refused(HTTPStatus(problem.status), problem.detail, problem.name) from problem

    async def _pass(self, request: Request, run: TokenRun, client: Client, brought: str) -> bool:
        """Pass a request on; return whether its answer ended well. Raise _Refused if none began."""
        route, reading = request.route, self._read(request, run)
        step = run.ledger.place()
        run.requests += 1
        name = ModelName(provider=route.family.provider, model=(reading.model if reading else "") or route.path)
        upstream = self._upstream(route.family, run, brought)
        keeping = Keeping(self._settings.keep_bytes, self._settings.stop_upstream)
        tools = reading.tools if reading is not None else NO_TOOLS
        model = PassedModel(name, request, upstream, client, tools=tools, keeping=keeping, clock=self._clock)
        try:
            await run.record_asked(step, request, reading)
            if run.answers is not None and (
                extent := await self._given(run, run.answers, request, client, step, reading)
            ):
                return extent == "whole"
            await run.settled()
            model_request = _request(name, request, run, step, reading, model)
            outcome = await (
                _aside(model, model_request) if route.kind == "aside" else _ask(run, model_request, client)
            )
            refusal = None if client.started else _refusal(outcome)
            answered, blobs = model.record(step, outcome.invocation_id or "")
            if refusal is not None:
                answered, blobs = refusal.recorded(answered, route.family)
            run.answered(answered)
            await run.ledger.record(answered, blobs)
        except JournalError as error:
            if client.started:
                raise
            raise _Refused(_UNAVAILABLE, f"nothing can be recorded: {error.message}", error.code.name) from error
        if answered.end in {"failed", "cut"}:
            run.failed(step, request)
        if refusal is not None:
            run.refused += answered.end == "refused"
            raise refusal
        return client.ended

    async def _given(
        self,
        run: TokenRun,
        answers: Answers,
        request: Request,
        client: Client,
        step: str,
        reading: RequestReading | None,
    ) -> Literal["", "whole", "cut"]:
        """Give the recorded answer; empty: a model is to be asked. Raise _Refused if none is recorded."""
        main = reading is not None and bool(reading.tools.specs)
        call = await asyncio.to_thread(answers.take, request, main=main)
        if call is None and answers.live:
            return ""
        if call is None or call.answered is None or not call.answered.status:
            words = f"the replay departs from {answers.recording.job}: this question has no recorded answer"
            raise _Refused(HTTPStatus.BAD_REQUEST, words, Code.NONDETERMINISTIC.name)
        answered, whole = call.answered, call.answered.end != "cut"
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in answered.headers.items()]
        await client.start(answered.status, headers)
        for piece in call.answer.split(_BLOCK):
            if piece:
                await client.piece(piece + _BLOCK if _BLOCK in call.answer else piece)
        if whole:
            await client.end()
        again = msgspec.structs.replace(
            answered, step=step, invocation_id="", given_from=f"{answers.recording.job} {answered.step}"
        )
        run.answered(again)
        await run.ledger.record(again, [Blob(sha256(call.answer), call.answer)] if call.answer else [])
        return "whole" if whole else "cut"

    def _read(self, request: Request, run: TokenRun) -> RequestReading | None:
        """Read a question; None: it cannot be read, and passes as bytes."""
        if request.route.kind != "model":
            return None
        try:
            return run.reader.read(request.route, request.body)
        except UnreadableError as error:
            if self._settings.unread == "refuse":
                words = f"the request cannot be read: {error}"
                raise _Refused(HTTPStatus.BAD_REQUEST, words, Code.INVALID_INPUT.name) from error
            return None

    def _upstream(self, family: Family, run: TokenRun, brought: str) -> Upstream:
        """Return where a request goes. Raise _Refused for a family that its run may not ask."""
        provider = (self._providers if run.providers is None else run.providers).get(family.prefix)
        if provider is None:
            words = f"this program asks models at {', '.join(run.providers or ())} alone"
            raise _Refused(HTTPStatus.BAD_REQUEST, words, Code.POLICY_DENIED.name)
        return Upstream(provider.url, provider.key or brought, self._client)


class _Refused(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request that is not passed on."""

    def __init__(self, status: int, words: str, code: str, after_s: int | None = None) -> None:
        super().__init__(words)
        self._status = status
        self._words = words.strip()
        self._code = code
        self._after_s = after_s

    def recorded(self, answered: ModelGatewayAnswered, family: Family) -> tuple[ModelGatewayAnswered, tuple[Blob, ...]]:
        """Return the event of an answer with this one in it."""
        body = refusal_of(family, self._status, self._words, self._code)
        ref, headers = BlobRef(sha256(body), len(body), ""), {"content-type": "application/json"}
        event = msgspec.structs.replace(
            answered, status=int(self._status), headers=headers, answer_blob=ref, size=len(body)
        )
        return event, (Blob(ref.digest, body),)

    async def say(self, send: Send, family: Family) -> None:
        """Answer in the form of the wire."""
        body = refusal_of(family, self._status, self._words, self._code)
        headers = {"content-type": "application/json", "content-length": str(len(body)), "x-remit-code": self._code}
        headers["x-should-retry"] = "true" if self._after_s is not None else "false"
        if self._after_s is not None:
            headers["retry-after"] = str(self._after_s)
        pairs = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": int(self._status), "headers": pairs})
        await send({"type": "http.response.body", "body": body})


def _refusal(outcome: Outcome) -> _Refused:
    """Return the answer to a question that the gate refused, or that did not reach its provider."""
    words = f"{outcome.reason} {outcome.remedy}"
    code = outcome.code.name if outcome.code is not None else ""
    if outcome.code in LIMITED:
        after = max(1, -(-(outcome.again_ms or 0) // 1_000))
        return _Refused(HTTPStatus.TOO_MANY_REQUESTS, words, code, after)
    if outcome.status == "failed" and outcome.code is not None:
        return _Refused(_FAULTS.get(outcome.code, HTTPStatus.BAD_GATEWAY), words, code)
    return _Refused(HTTPStatus.BAD_REQUEST, words, code)


def _request(
    name: ModelName, request: Request, run: TokenRun, step: str, reading: RequestReading | None, model: PassedModel
) -> ModelRequest:
    """Return a request as the gate judges it; of one that was not read, that there are bytes."""
    if reading is None:
        note = msgspec.json.encode({"bytes": len(request.body), "route": request.route.path}).decode()
        thread, sampling = EMPTY.add(ModelMessage("user", (Opaque(note),))), Sampling()
    else:
        thread, sampling = reading.thread, reading.sampling
    return ModelRequest(
        model=str(name),
        thread=thread,
        step=step,
        principal=run.principal,
        sampling=sampling,
        caller=run.kind,
        recipe=run.job.recipe if run.job is not None else "",
        job=run.job,
        known=run.known,
        spent=run.spent,
        budget=run.budget,
        via=model,
    )


async def _ask(run: TokenRun, request: ModelRequest, client: Client) -> Outcome:
    """Ask through the gate, and wait for a person where a rule asks one."""
    while True:
        outcome = await run.ledger.ask(request, unwatched)
        if outcome.status != "pending" or outcome.confirmation is None or client.gone.is_set():
            return outcome
        client.watch()
        await run.ledger.decided(outcome.confirmation)
        request = msgspec.structs.replace(request, confirmation=outcome.confirmation)


async def _aside(model: PassedModel, request: ModelRequest) -> Outcome:
    """Pass on what asks no model, such as a list of models: nothing of a prompt is in it."""
    try:
        await model.send(model.prepare(Ask(thread=request.thread)), unwatched)
    except ModelFault as fault:
        return Outcome(status="failed", code=fault.code, reason=fault.reason)
    return Outcome(status="ok")


def _token(headers: Mapping[str, str], query: str) -> tuple[str, str]:
    """Return the token of a request, from whichever of four places, and the query without it."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    pairs = parse_qsl(query, keep_blank_values=True)
    key = next((value for name, value in pairs if name == "key"), "")
    token = bearer if scheme.lower() == "bearer" else ""
    rest = query if not key else urlencode([pair for pair in pairs if pair[0] != "key"])
    return token or headers.get("x-api-key", "") or headers.get("x-goog-api-key", "") or key, rest


async def _abort(scope: Scope, client: Client) -> None:
    """Cut the program's connection: it must not take what broke off for a whole answer."""
    if not client.gone.is_set():
        scope[ABORT]()
        await client.left()


def paths() -> tuple[str, ...]:
    """Return the paths at which it answers."""
    return tuple(family.prefix for family in FAMILIES)
