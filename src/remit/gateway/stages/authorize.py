"""Authorize: what policy says of this call.

Facts that rules ask for beside the call: the job's input, results of its earlier calls, and what was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.gateway.call import Call, Proceed, idempotency_key
from remit.gateway.outcome import Outcome, refused
from remit.gateway.takings import LimitPart, LimitUnprovenError
from remit.journal.kinds import UNSET, LimitTaken, ToolInvocationFinished, ToolInvocationStarted, decode
from remit.journal.kinds.calls import DecisionFacts
from remit.journal.lineage import inherited
from remit.policy.decision import UNKNOWN, Caller, Decision, Facts, Query
from remit.policy.explain import beyond
from remit.policy.levels import exposed
from remit.policy.rules import NO_NEEDS
from remit.policy.verdict import BUDGET_ID, DONE

if TYPE_CHECKING:
    from remit.gateway.model_request import ModelAttempt
    from remit.gateway.services import Services
    from remit.gateway.takings import Takings
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.policy.approval import Remembered
    from remit.policy.rules import Needs


class _Results:
    """The last result of each tool, as far as a stream was read."""

    def __init__(self) -> None:
        self.seq = 0
        self.open: dict[str, str] = {}
        """Tools of calls that were announced, by invocation."""
        self.last: dict[str, tuple[int, ToolInvocationFinished]] = {}
        """Last result by tool, with its event's number (0: it is shared with another job)."""


class FactFinder:
    """Looks up what rules ask for; nothing if they ask for nothing."""

    def __init__(self, journal: Journal, takings: Takings) -> None:
        self._journal = journal
        self._takings = takings
        self._results: WeakKeyDictionary[StreamWriter, _Results] = WeakKeyDictionary()

    async def of(self, call: Call, query: Query, needs: Needs) -> Query:
        """The query with its facts; sets what the call would take of limits. Raises JournalError."""
        job = call.request.job
        known = _decoded(bytes(job.encoded)) if needs.input and job is not None else UNKNOWN
        results, places = await self._seen(call.writer, needs.tools) if needs.tools else ({}, {})
        query = replace(query, facts=Facts(input=known, seen=results))
        if places or needs.limits:
            call.facts = DecisionFacts(seen=places)
        if not needs.limits:
            return query
        intent = idempotency_key(call)
        limited = [
            limited_rule
            for limited_rule in needs.limits
            if limited_rule.met is None or limited_rule.met(query) is not False
        ]
        keys = {limited_rule.rule.id: limited_rule.limit.key(limited_rule.rule.id, query) for limited_rule in limited}
        taken = await self._takings.totals([key for key in keys.values() if key], intent)
        query = replace(query, facts=Facts(input=known, seen=results, taken=taken))
        totals = {rule: (calls, str(total)) for rule, key in keys.items() if key for calls, total in (taken[key],)}
        call.facts = DecisionFacts(seen=places, taken=totals)
        parts = (
            LimitPart(
                limit=limited_rule.limit,
                key=keys[limited_rule.rule.id],
                bound=limited_rule.limit.within(limited_rule.rule.id, query) is True,
                taken=LimitTaken(
                    rule_id=limited_rule.rule.id,
                    intent=intent,
                    tool_name=call.tool.meta.name,
                    principal=call.request.principal,
                    stream=call.writer.stream,
                    step=call.request.step,
                    amount=str(limited_rule.limit.amount(query) or 0),
                ),
            )
            for limited_rule in limited
            if keys[limited_rule.rule.id]
        )
        call.parts = _together(parts)
        return query

    async def _seen(self, writer: StreamWriter, tools: frozenset[str]) -> tuple[Mapping[str, Any], dict[str, int]]:
        """Return what each of these tools last returned in this stream, and the event that holds it."""
        await self._journal.drained()
        results = self._results.setdefault(writer, _Results())
        if not results.seq:
            for event in await inherited(self._journal, writer.stream):
                _note(results, 0, decode(event.kind, event.data))
        while page := await self._journal.page(writer.stream, results.seq):
            for event in page:
                if event.seq > results.seq:
                    results.seq = event.seq
                    _note(results, event.seq, decode(event.kind, event.data))
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        for tool in sorted(tools & results.last.keys()):
            seq, finished = results.last[tool]
            if seq:
                places[tool] = seq
            encoded = await self._journal.value(finished.result, finished.result_blob)
            values[tool] = _decoded(encoded) if encoded is not None else None
        return values, places


def _together(parts: Iterable[LimitPart]) -> tuple[LimitPart, ...]:
    """One part of each count, though several rules share a pot; it is bound if one of theirs is."""
    together: dict[str, LimitPart] = {}
    for part in parts:
        known = together.get(part.key)
        together[part.key] = part if known is None or (part.bound and not known.bound) else known
    return tuple(together.values())


def with_remembered(
    facts: DecisionFacts | msgspec.UnsetType, remembered: Sequence[Remembered]
) -> DecisionFacts | msgspec.UnsetType:
    """The facts of a decision, with the remembered approvals that held."""
    ids = tuple([remembered_rule.id for remembered_rule in remembered])
    return DecisionFacts(remembered=ids) if isinstance(facts, msgspec.UnsetType) else replace(facts, remembered=ids)


def _note(results: _Results, seq: int, payload: object) -> None:
    if isinstance(payload, ToolInvocationStarted):
        results.open[payload.invocation_id] = payload.tool_name
    elif isinstance(payload, ToolInvocationFinished):
        tool = results.open.pop(payload.invocation_id, "")
        if tool and payload.outcome == "success" and payload.step_outcome in DONE:
            results.last[tool] = seq, payload


@lru_cache(maxsize=256)
def _decoded(encoded: bytes) -> Any:
    """A JSON value, which is only read."""
    return msgspec.json.decode(encoded)


_TRIES: Final = 10
"""Times that policy decides again because what it decided by has changed before the call was announced."""
_PROTECT: Final = (
    "Declare it with @tool(..., sandbox=True). To run it in this process instead, declare it with @tool(..., "
    "unprotected=True), or name it in tools.unprotected."
)


class Authorize:
    """Decides deny > ask > allow; a remembered approval can turn an ask into an allow, nothing else."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._remembered = services.remembered
        self._unprotected = services.limits.unprotected
        self._clock = services.journal.clock
        self._facts = FactFinder(services.journal, services.takings)

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Refuse with POLICY_DENIED, SANDBOX_REQUIRED or as the caller does, or set `query`, `decision` and `parts`.

        What is wrong with the record of a limit refuses as well, with its own code.
        """
        call.stage = "authorize"
        call.again = partial(self._again, proceed=proceed)
        outcome = await self._decided(call, proceed)
        for _ in range(_TRIES):
            if not call.outrun:
                break
            outcome = await self._again(call, proceed)
        return outcome

    async def _again(self, call: Call, proceed: Proceed) -> Outcome:
        """Decide again on what holds now, of the question too: what it was may have ended since."""
        call.outrun = False
        if call.confirmation is not None:
            self._confirmations.unclaim(call.confirmation)
            call.confirmation = await self._confirmations.load(call.confirmation.stream)
        return await self._decided(call, proceed)

    async def _decided(self, call: Call, proceed: Proceed) -> Outcome:
        request, tool = call.request, call.tool
        call.facts, call.decided_at = UNSET, 0
        query = call.query = Query(
            tool=tool.meta,
            key=tool.key,
            args=call.args,
            caller=Caller(
                principal=request.principal,
                kind=request.caller,
                recipe=request.recipe,
                stream=request.within or call.writer.stream,
            ),
            contract_hash=tool.contract_hash,
            prompt_hash=tool.prompt_hash,
            now=self._clock.now(),
        )
        if call.policy.needs_facts and (needs := call.policy.needs(tool.meta, tool.key)) is not NO_NEEDS:
            try:
                query = call.query = await self._facts.of(call, query, needs)
            except LimitUnprovenError as error:
                return error.outcome
        decision = call.policy.decide(query)
        if call.policy.looks_at_time:
            call.decided_at = query.now
        if decision.effect == "ask" and (remembered := await self._remembered.active(tool.meta.name)):
            decision = call.policy.decide(query, remembered=remembered)
            call.decided_at, call.facts = query.now, with_remembered(call.facts, remembered)
        if decision.effect == "allow" and call.asking is not None and (budget := _beyond(call, call.asking)):
            decision = Decision(effect="ask", rule_id=f"{BUDGET_ID}{budget}", reason="")
        call.decision, call.rule_id = decision, decision.rule_id
        if decision.effect == "deny":
            look = f"See `remit policy explain {tool.meta.name}`; the" if call.asking is None else "The"
            remedy = f"{look} rule is {decision.rule_id}."
            full = beyond(call.policy.rules, decision, query)
            return refused(Code.POLICY_DENIED, f"{decision.reason} {full}" if full else decision.reason, remedy)
        if request.barred is not None:
            return request.barred
        if tool.meta.isolation == "none" and exposed(tool.meta, self._unprotected):
            return refused(Code.SANDBOX_REQUIRED, f"{tool.meta.name} executes code without isolation", _PROTECT)
        return await proceed(call)


def _beyond(call: Call, asking: ModelAttempt) -> str:
    """Return the first budget that a person decides about, or is asked about already; empty for no budget."""
    waiting = call.confirmation if call.confirmation is not None and call.confirmation.state == "pending" else None
    keys = asking.over or (waiting.request.budgets if waiting is not None else ())
    return next(iter(keys), "").partition("\0")[0]
