"""Decisions of the gate as they are recorded, each with the facts that it was made from (rule 18).

A call that ran was allowed, or asked about and approved; a question was asked; a refusal by policy was denied. What an
event of the call holds is taken as it is. What an older Remit did not record is taken from elsewhere in the record, and
is missing where it stands nowhere: then the decision cannot be taken again, and says why.

Decisions of each rule, call by call and counted, over the newest streams of a journal.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError, PayloadErasedError, PolicyError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import KIND as JOB
from remit.journal import kinds as k
from remit.journal.event import Event, HeadQuery
from remit.journal.kinds import ConfirmationRequested, GateRefused, ToolInvocationStarted, decode
from remit.journal.kinds.calls import DecisionFacts
from remit.journal.lineage import inherited
from remit.policy.approval import Remembered, parse_remembered
from remit.policy.decision import UNKNOWN, Caller, Effect, Facts, Query
from remit.policy.levels import UNKNOWN_TOOL
from remit.policy.verdict import DONE, RecordedFacts, effect_of_refusal
from remit.record.heads import CALL, PART, SESSION
from remit.record.walk import RootOrigin, Take
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import key_of, name_of_model

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.policy.decision import CallerKind


Asked = k.ToolInvocationStarted | k.ConfirmationRequested | k.GateRefused
"""Events that a decision stands in."""
_RISKS: Final = {"read": Risk.READ_ONLY, "write": Risk.WRITE, "unknown": Risk.UNKNOWN}
_CONFIRM_RULE: Final = "default:confirm"
_decode: Final = msgspec.json.Decoder().decode
_decode_untrusted: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode


class RememberedApproval(NamedTuple):
    """A remembered approval, and when it was revoked, in microseconds since the Unix epoch."""

    rule: Remembered
    until: int = sys.maxsize


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A recorded decision."""

    origin: RootOrigin
    event: Event
    payload: Asked
    effect: Effect
    stream: str
    """The stream of the caller, which a question lies below."""
    kind: CallerKind
    """Kind of the caller."""
    scope: str
    """The stream that rules know the caller by."""
    last_results: Mapping[str, k.ToolInvocationFinished]
    """The last result of each tool whose results are asked for, by then."""
    remembered: tuple[RememberedApproval, ...]
    """The remembered approvals of the tool, at whatever time they held."""

    @property
    def call(self) -> str:
        """Return what is the same for a question and the call that it was about."""
        return f"{self.stream}\0{self.payload.step}"

    @property
    def at(self) -> int:
        """Return when it was decided, in microseconds since the Unix epoch."""
        return self.payload.decided_at or self.event.at


class MissingFactError(Exception):
    """A decision cannot be taken again; the message says why."""


Judge = Callable[[RecordedDecision], Awaitable[None]]
"""Looks at a decision. Raises MissingFactError if it cannot be taken again."""


class DecisionCollector:
    """Collects decisions, and hands each to a judge, those of a stream in the order in which they were recorded.

    `judge` gets what was decided at `since` (µs) or later. `result_tools` are those whose last results count; None:
    every tool's.
    """

    def __init__(self, judge: Judge, *, result_tools: frozenset[str] | None = frozenset(), since: int = 0) -> None:
        self.missing: dict[str, int] = {}
        """Decisions that could not be taken again, by the reason."""
        self._judge = judge
        self._wanted = result_tools
        self._since = since
        self._waiting: list[RecordedDecision] = []
        self._running: dict[str, tuple[str, str]] = {}
        self._results: dict[str, dict[str, k.ToolInvocationFinished]] = {}
        self._remembered: dict[str, tuple[RememberedApproval, ...]] = {}
        self._edited: set[str] = set()
        """Questions that people made of others."""
        self._tools: dict[str, str] = {}
        """The tool of each remembered approval, by its identifier."""

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """Calls, questions, refusals and remembered approvals."""
        return {
            k.ToolInvocationStarted: self._start,
            k.ToolInvocationFinished: self._finish,
            k.ConfirmationRequested: self._ask,
            k.ConfirmationDecided: self._answer,
            k.GateRefused: self._refuse,
            k.ApprovalRemembered: self._remember,
            k.ApprovalRevoked: self._revoke,
        }

    async def settle(self) -> None:
        """Judge what was collected."""
        waiting, self._waiting = self._waiting, []
        for decided in waiting:
            if isinstance(decided.payload, k.ConfirmationRequested) and decided.payload.confirmation in self._edited:
                continue  # a person asked it, with other arguments; the gate decides on them when the call is made
            try:
                await self._judge(decided)
            except MissingFactError as error:
                self.missing[str(error)] = self.missing.get(str(error), 0) + 1

    def _start(self, origin: RootOrigin, event: Event, payload: k.ToolInvocationStarted) -> None:
        if self._wanted is None or payload.tool_name in self._wanted:
            self._running[payload.invocation_id] = event.stream, payload.tool_name
        if event.seq > origin.taken_until:
            self._add(origin, event, payload, "ask" if payload.confirmation else "allow", event.stream)

    def _finish(self, _origin: RootOrigin, event: Event, payload: k.ToolInvocationFinished) -> None:
        stream, tool = self._running.pop(payload.invocation_id, ("", ""))
        if stream and _is_done(payload):
            self._results[event.stream] = {**self._results.get(event.stream, {}), tool: payload}

    def _ask(self, origin: RootOrigin, event: Event, payload: k.ConfirmationRequested) -> None:
        if (
            payload.provider_id and payload.policy_hash
        ):  # the question itself; the caller's own stream says that it waits
            self._add(origin, event, payload, "ask", event.stream.rpartition(f"/{CONFIRMATION}/")[0])

    def _answer(self, _origin: RootOrigin, _event: Event, payload: k.ConfirmationDecided) -> None:
        if payload.decision == "edit":
            self._edited.add(payload.replaced_by)

    def _refuse(self, origin: RootOrigin, event: Event, payload: k.GateRefused) -> None:
        passed: Effect = "ask" if payload.confirmation else "allow"
        effect = effect_of_refusal(payload.code, payload.stage, passed, model_call=payload.model_call)
        if effect is not None and event.seq > origin.taken_until:
            self._add(origin, event, payload, effect, event.stream)

    def _add(self, origin: RootOrigin, event: Event, payload: Asked, effect: Effect, stream: str) -> None:
        if event.at < self._since:
            return
        self._waiting.append(
            RecordedDecision(
                origin=origin,
                event=event,
                payload=payload,
                effect=effect,
                stream=stream,
                kind=origin.kind,
                scope=stream if origin.created is not None else origin.scope,
                last_results=self._results.get(stream, {}),
                remembered=self._remembered.get(payload.tool_name, ()),
            )
        )

    def _remember(self, _origin: RootOrigin, event: Event, payload: k.ApprovalRemembered) -> None:
        try:
            rule = parse_remembered(payload.rule)
        except PolicyError:
            return  # which the gate leaves out as well
        self._tools[event.stream] = rule.tool
        self._remembered[rule.tool] = (RememberedApproval(rule), *self._remembered.get(rule.tool, ()))

    def _revoke(self, _origin: RootOrigin, event: Event, _payload: k.ApprovalRevoked) -> None:
        tool = self._tools.get(event.stream, "")
        name = event.stream.rpartition("/")[2]
        self._remembered[tool] = tuple(
            held._replace(until=event.at) if held.rule.id == name else held for held in self._remembered.get(tool, ())
        )


class FactReader:
    """Reads the facts of decisions back: tools are made again once for each form in which they were recorded.

    It looks up values in `journal`; `tools` are today's, for facts that were never recorded. `beside` also reads the
    facts beside the call: results of earlier ones, and the job's input.
    """

    def __init__(self, journal: Journal, tools: Mapping[str, ToolMeta] | None = None, *, beside: bool = True) -> None:
        self._with = beside
        self._journal = journal
        self._today = tools or {}
        self._metas: dict[tuple[Any, ...], ToolMeta] = {}
        self._named: dict[str, ToolMeta] = {}
        """A form of each tool that was recorded whole, by its name."""
        self._inputs: dict[str, Any] = {}
        self._inherited: dict[str, Mapping[str, k.ToolInvocationFinished]] = {}

    async def facts_of(
        self, decided: RecordedDecision, *, today: ToolMeta | None = None, exact: bool = False
    ) -> RecordedFacts:
        """The facts of a decision; with `today` instead of the tool as it was.

        `exact` leaves out remembered approvals that the gate did not look at. Raises MissingFactError or JournalError.
        """
        payload, origin = decided.payload, decided.origin
        try:
            args = await self._args(payload)
            tool = today or await self._tool(payload)
            untrusted = await self._untrusted(payload)
            facts = await self._beside(decided) if self._with else None
        except PayloadErasedError:
            raise MissingFactError("its values were erased") from None
        principal = payload.principal or (origin.created.principal if origin.created is not None else "")
        caller = Caller(principal=principal, kind=decided.kind, recipe=origin.name, stream=decided.scope)
        query = Query(
            tool=tool,
            key=key_of(tool.name) if tool is not None else payload.tool_name,
            args=args,
            caller=caller,
            contract_hash=payload.contract_hash,
            prompt_hash=payload.prompt_hash,
            now=decided.at,
            facts=facts,
        )
        return RecordedFacts(query=query, remembered=_held(decided, exact=exact), untrusted=untrusted)

    async def _args(self, payload: Asked) -> dict[str, Any]:
        args = payload.args
        encoded = args if isinstance(args, msgspec.Raw) else await self._journal.value(args, payload.args_blob)
        if encoded is None:
            raise MissingFactError("its arguments are not recorded")
        value = _decode(encoded)
        if not isinstance(value, dict):
            raise MissingFactError("its arguments cannot be read")
        return value

    async def _untrusted(self, payload: Asked) -> tuple[str, ...]:
        encoded = await self._journal.value(payload.untrusted, payload.untrusted_blob)
        return (
            tuple(dict.fromkeys(str(argument.get("path", "")) for argument in _decode_untrusted(encoded)))
            if encoded
            else ()
        )

    async def _tool(self, payload: Asked) -> ToolMeta | None:
        """The tool as the gate knew it; None: there was none of this name."""
        if not payload.provider_id:
            is_unknown = payload.rule_id == UNKNOWN_TOOL.rule_id  # an older Remit recorded the code alone
            if isinstance(payload, k.GateRefused) and (is_unknown or payload.code == Code.UNKNOWN_TOOL.name):
                return None
            return self._elsewhere(payload)
        if not payload.risk_level and not isinstance(payload, k.ToolInvocationStarted):
            return self._elsewhere(payload)
        schema, name = payload.request_schema_hash, payload.tool_name
        if isinstance(payload, k.GateRefused) and payload.model_call:  # rules know a model by its provider
            name = name_of_model(payload.provider_id)
        confirms = payload.confirms or payload.rule_id == _CONFIRM_RULE
        form = (
            name, payload.provider_id, payload.capability_level, payload.risk_level, payload.side_effect,
            confirms, schema, payload.tool_version, payload.alias,
        )  # fmt: skip
        tool = self._metas.get(form)
        if tool is None:
            level, risk = _classes(payload)
            tool = self._metas[form] = self._named[name] = ToolMeta(
                name=name,
                provider_id=payload.provider_id,
                alias=payload.alias,
                input_schema=await self._schema(schema),
                capability_level=level,
                risk_level=risk,
                side_effects=payload.side_effect != "read",
                requires_confirm=confirms,
                version=payload.tool_version,
            )
        return tool

    def _elsewhere(self, payload: Asked) -> ToolMeta:
        """The tool as another event says it is, or as it is today."""
        known = self._named.get(payload.tool_name) or self._today.get(payload.tool_name)
        if known is None:
            raise MissingFactError("what its tool was is not recorded")
        return known

    async def _schema(self, digest: str) -> dict[str, Any] | None:
        try:
            schema = await self._journal.schema(digest) if digest else None
        except ChainBrokenError:
            return None
        return schema if isinstance(schema, dict) else None

    async def _beside(self, decided: RecordedDecision) -> Facts:
        """Return what rules may ask for beside the call; what was taken of limits only as far as it was recorded."""
        recorded = decided.payload.facts
        last = decided.last_results
        if decided.origin.shares:
            last = {**await self._shared(decided.stream), **last}
        results = {tool: await self._result(event) for tool, event in last.items()}
        if isinstance(recorded, DecisionFacts):
            for tool, seq in recorded.seen.items():
                results[tool] = await self._result_at(decided.stream, seq)
        return Facts(input=await self._input(decided.origin), seen=results)

    async def _shared(self, stream: str) -> Mapping[str, k.ToolInvocationFinished]:
        """The last result of each tool among the events that a fork shares with other jobs."""
        results = self._inherited.get(stream)
        if results is None:
            running, results = dict[str, str](), {}
            for event in await inherited(self._journal, stream):
                payload = k.decode(event.kind, event.data)
                if isinstance(payload, k.ToolInvocationStarted):
                    running[payload.invocation_id] = payload.tool_name
                elif isinstance(payload, k.ToolInvocationFinished) and _is_done(payload):
                    results[running.get(payload.invocation_id, "")] = payload
            self._inherited[stream] = results
        return results

    async def _input(self, origin: RootOrigin) -> Any:
        created = origin.created
        if created is None:
            return UNKNOWN
        if origin.root not in self._inputs:
            encoded = await self._journal.value(created.input, created.input_blob)
            if len(self._inputs) >= _KEPT:
                self._inputs.clear()
            self._inputs[origin.root] = _decode(encoded or b"null")
        return self._inputs[origin.root]

    async def _result(self, finished: k.ToolInvocationFinished) -> Any:
        encoded = await self._journal.value(finished.result, finished.result_blob)
        return None if encoded is None else _decode(encoded)

    async def _result_at(self, stream: str, seq: int) -> Any:
        for event in await self._journal.page(stream, seq - 1):
            payload = k.decode(event.kind, event.data)
            if event.seq == seq and isinstance(payload, k.ToolInvocationFinished):
                return await self._result(payload)
            break
        return UNKNOWN


_KEPT: Final = 10_000
"""Inputs of jobs that are kept."""


def _classes(payload: Asked) -> tuple[Level, Risk]:
    """Return the level and the risk that a call was judged by. Raises MissingFactError for those of a newer Remit."""
    try:
        risk = Risk(payload.risk_level) if payload.risk_level else _RISKS[payload.side_effect]
        return Level(payload.capability_level), risk
    except (ValueError, KeyError):
        raise MissingFactError("a newer Remit judged its tool by a level or risk of its own") from None


def _is_done(payload: k.ToolInvocationFinished) -> bool:
    """Return whether rules may look at a result."""
    return payload.outcome == "success" and payload.step_outcome in DONE


def taken_of(decided: RecordedDecision) -> Mapping[str, tuple[int, Decimal]]:
    """Calls and their sum as the gate counted them before this call, by the id of the rule whose limit it is."""
    facts = decided.payload.facts
    if not isinstance(facts, DecisionFacts):
        return {}
    return {rule: (calls, Decimal(total)) for rule, (calls, total) in facts.taken.items()}


def _held(decided: RecordedDecision, *, exact: bool) -> tuple[Remembered, ...]:
    """The remembered approvals that the gate had, where it says so; else those that the record knows of."""
    facts = decided.payload.facts
    named = facts.remembered if isinstance(facts, DecisionFacts) else ()
    if not named and not exact:
        return tuple(rule for rule, until in decided.remembered if rule.made_at <= decided.event.at < until)
    answered = decided.payload.rule_id.removeprefix("remembered:")
    by_id = {held.rule.id: held.rule for held in decided.remembered}
    return tuple(by_id[approval] for approval in dict.fromkeys((*named, answered)) if approval in by_id)


STREAMS: Final = 500
"""Streams of each kind that are looked at, newest first."""
_AT_ONCE: Final = 32
"""Streams that are read at once."""
_KINDS: Final = frozenset({ConfirmationRequested.KIND, GateRefused.KIND, ToolInvocationStarted.KIND})


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule decided about one call."""

    rule_id: str
    verdict: Literal["ran", "asked", "denied"]
    at: int
    """Microseconds since the Unix epoch."""
    stream: str
    """Of the job or session that makes the call."""
    step: str
    tool: str
    """Empty for a question of a recipe."""
    confirmation: str = ""
    """The question, where it asked."""


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule decided."""

    rule_id: str
    ran: int = 0
    """Calls that it let through; also those that a person approved."""
    asked: int = 0
    denied: int = 0
    """Calls that it refused; not those that were refused for another reason."""
    last_at: int = 0
    """Microseconds since the Unix epoch."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.ran + self.asked + self.denied


async def hits_of(journal: Journal, since: int) -> dict[str, Hits]:
    """Return what each rule decided at or after `since`, by its id, as far as the newest streams tell."""
    hits: dict[str, Hits] = {}
    async for ruling in _rulings(journal, since):
        before = hits.get(ruling.rule_id) or Hits(rule_id=ruling.rule_id)
        counted = {ruling.verdict: getattr(before, ruling.verdict) + 1}
        hits[ruling.rule_id] = msgspec.structs.replace(before, last_at=max(before.last_at, ruling.at), **counted)
    return hits


async def rulings_of(journal: Journal, since: int, rule: str) -> list[Ruling]:
    """Each decision of a rule at or after `since`, newest first, as far as the newest streams tell."""
    rulings = [ruling async for ruling in _rulings(journal, since) if ruling.rule_id == rule]
    return sorted(rulings, key=lambda ruling: -ruling.at)


async def _rulings(journal: Journal, since: int) -> AsyncIterator[Ruling]:
    for kind in (JOB, SESSION, PART, CALL, CONFIRMATION):
        heads = await journal.heads(HeadQuery(kind=kind, limit=STREAMS))
        streams = [head.stream for head in heads if head.updated_at >= since]
        sessions = {head.stream: f"{SESSION}/{head.labels['session']}" for head in heads if "session" in head.labels}
        for start in range(0, len(streams), _AT_ONCE):
            some = streams[start : start + _AT_ONCE]
            for stream, events in zip(some, await asyncio.gather(*map(journal.left, some)), strict=True):
                for event in events:
                    if event.at >= since and event.kind in _KINDS and (ruling := _ruling(stream, event)) is not None:
                        yield msgspec.structs.replace(ruling, stream=sessions.get(stream, ruling.stream))


def _ruling(stream: str, event: Event) -> Ruling | None:
    """The decision that an event tells of; None: it tells of none."""
    payload = decode(event.kind, event.data)
    verdict: Literal["ran", "asked", "denied"]
    question = ""
    match payload:
        case ToolInvocationStarted(attempt=1, rule_id=str(rule), step=step, tool_name=tool):
            verdict = "ran"
        case ConfirmationRequested(rule_id=str(rule), step=step, tool_name=tool):
            verdict, stream, question = "asked", stream.rpartition(f"/{CONFIRMATION}/")[0], payload.confirmation
        case GateRefused(code=Code.POLICY_DENIED.name, rule_id=str(rule), step=step, tool_name=tool):
            verdict = "denied"
        case _:
            return None
    if not rule:
        return None
    return Ruling(
        rule_id=rule, verdict=verdict, at=event.at, stream=stream, step=step, tool=tool, confirmation=question
    )
