"""RecordRefusal: every refusal below leaves a record.

RecordOutcome: on the way back, the result is checked, its evidence kept, and the outcome recorded.

RecordReply: on the way back, the model's answer, or why there is none, is recorded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.conversation import packed_untrusted
from remit.gateway.model_request import ModelAttempt
from remit.gateway.outcome import LIMITED, Outcome, answered, in_doubt
from remit.gateway.result import CheckedResult, KeptResult, ResultCheck, StepOutcome, events_of, remedy_of
from remit.gateway.schema_gate import KeptTexts
from remit.journal.blobs import Packed, pack
from remit.journal.effects import COMMITTED, LOST, UNSENT_CAUSES, effect_reported
from remit.journal.event import Blob
from remit.journal.kinds import UNSET, CommandCommitted, ErrorInfo, GateRefused, ToolInvocationFinished
from remit.large import is_large
from remit.models.message import digest_of, encode
from remit.models.reply import TokenUsage
from remit.redact import line
from remit.tools.provider import Reports, ToolResult, supports

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.effects import Effect
    from remit.metrics import Registry
    from remit.models.fallback import Next
    from remit.tools.catalog import Tool


_UNCHECKED: Final = CheckedResult()
_UNSENT_ATTEMPTS: Final = 3
"""Attempts in all at a call that does not reach its provider, whatever the tool allows."""


class RecordOutcome:
    """Records `tool_invocation_finished`, and `evidence_attached` before it."""

    def __init__(self, services: Services) -> None:
        self._results = ResultCheck(services.limits, services.journal.clock, services.schema_gate)

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the call run, then record its outcome; the value is given on as a replay would give it."""
        call.stage = "record_outcome"
        outcome = await proceed(call)
        effect = outcome.effect
        if outcome.ok:
            result = call.result
            if isinstance(result, ToolResult) and is_large(
                result.value
            ):  # in a thread, so that it holds no one else up
                checked = await asyncio.to_thread(self._results.check, call.tool, result)
            else:
                checked = self._results.check(call.tool, result)
            effect = COMMITTED if call.tool.meta.side_effects else effect
        else:
            checked = self._attached(call)
        if call.request.repeats and effect.known == "none":
            effect = LOST  # this attempt had none; that of the one before is unknown
        outcome = checked.failure or outcome
        provider = call.tool.provider
        report = provider.report(call.invocation_id) if supports(provider, Reports) else None
        effect = effect_reported(effect, open_=report.open) if report is not None else effect
        step_outcome = _step_outcome(call, outcome, effect)
        outcome = replace(
            outcome,
            effect=effect,
            remedy=remedy_of(outcome, effect),
            value=checked.value,
            evidence=checked.evidence.items,
            invocation_id=call.invocation_id,
            again=_again(call, effect) if step_outcome == "retryable_failure" else None,
            duration_us=call.duration_us,
        )
        events, blobs = events_of(
            outcome,
            checked,
            invocation_id=call.invocation_id,
            step=call.request.step,
            step_outcome=step_outcome,
            tool=call.tool,
            report=report,
        )
        await call.journal.append(call.writer, *events, synced=call.request.leaves, blobs=blobs)
        if call.request.provenance is not None:
            for event in events:
                if isinstance(event, ToolInvocationFinished):
                    call.request.provenance.finished(event)
        return outcome

    def _attached(self, call: Call) -> CheckedResult:
        """Return what the provider attached to a failure; what cannot be kept of it leaves the failure as it is."""
        if not isinstance(call.result, ToolResult):
            return _UNCHECKED
        evidence = self._results.evidence_of(call.tool, call.result)
        repaired = call.result.repaired or {}
        return (
            CheckedResult(evidence=evidence, repaired=repaired)
            if isinstance(evidence, KeptResult)
            else CheckedResult(repaired=repaired)
        )


def _again(call: Call, effect: Effect) -> str:
    """Return who may repeat it: anyone where nothing happened, else only the provider that knows its key."""
    return call.tool.meta.provider_id if effect.stands else ""


def _step_outcome(call: Call, outcome: Outcome, effect: Effect) -> StepOutcome:
    meta, request = call.tool.meta, call.request
    if effect.known == "committed":
        return "side_effect_committed"  # also if its result is of no use
    if outcome.ok:
        return "pure"
    if outcome.uncertain:
        return "uncertain"
    if outcome.code in LIMITED and outcome.again_ms is not None and request.line is not None:
        return "retryable_failure"  # the job waits for its turn at the runner
    retryable = outcome.code is not None and outcome.code.retryable
    attempts = meta.attempts if outcome.cause not in UNSENT_CAUSES else max(meta.attempts, _UNSENT_ATTEMPTS)
    again = retryable and request.tries_again and request.attempt < attempts
    if again:
        return "retryable_failure"
    # An attempt that may be repeated, and was not heard of to the end, may have had its effect all the same.
    return "compensatable_failure" if retryable and request.undoable and meta.side_effects else "permanent_failure"


_NONE: Final = TokenUsage()
_LATER: Final = "Ask again later{how}. models.attempts says how often a question is asked."


class ModelMeter:
    """Counts attempts at models by name: how they ended, what they took, and how long."""

    def __init__(self, metrics: Registry) -> None:
        self._attempts = metrics.counter("model_attempts_total", "Attempts at models, by code or ok.", "model", "code")
        self._tokens = metrics.counter("model_tokens_total", "Tokens of answers.", "model", "direction")
        self._cost = metrics.counter("model_cost_dollars_total", "US dollars, where a price is known.", "model")
        self._left = metrics.counter("model_fallbacks_total", "Models left for the next one.", "model", "code")
        self._seconds = metrics.histogram("model_seconds", "Seconds until an answer was whole.", "model")

    def count(self, model: str, committed: CommandCommitted) -> None:
        """Count an attempt that has ended."""
        code = committed.error.code if committed.error is not None else "ok"
        self._attempts.add(model, code)
        if committed.next_model:
            self._left.add(model, code)
        if committed.error is not None:
            return
        self._tokens.add(model, "input", by=committed.input_tokens)
        self._tokens.add(model, "output", by=committed.output_tokens)
        self._cost.add(model, by=committed.cost or 0.0)
        self._seconds.taker(model)(committed.duration_ms / 1_000)


class RecordReply:
    """Records `command_committed`; the reply is given on as a replay would give it."""

    def __init__(self, services: Services) -> None:
        self._prices = services.prices
        self._fallbacks = services.fallbacks
        self._default = services.default_model
        self._meter = ModelMeter(services.metrics)
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the model be asked, then settle what was reserved for it."""
        call.stage = "record_reply"
        outcome = await proceed(call)
        asking = call.asking
        if asking is None:
            return outcome
        following = self._next(asking, outcome)
        if asking.reply is None and following is None and asking.request.via is None:
            outcome = _given_up(outcome, asking.request.attempt, call.writer.stream)
        committed, blobs = self._committed(call, asking, outcome, following)
        asking.request.spent.settle(asking.started, committed)
        if asking.reply is not None:
            asking.request.known.messages.add(digest_of(asking.reply.message))
        await call.journal.append(call.writer, committed, synced=False, blobs=blobs)
        self._meter.count(asking.started.name, committed)
        value = None if asking.reply is None else answered(committed, asking.reply.message)
        return replace(
            outcome,
            value=value,
            invocation_id=call.invocation_id,
            again_ms=committed.again_ms,
            again_model=committed.next_model,
            duration_us=call.duration_us,
        )

    def _committed(
        self, call: Call, asking: ModelAttempt, outcome: Outcome, following: Next | None
    ) -> tuple[CommandCommitted, tuple[Blob, ...]]:
        request, reply, name = asking.request, asking.reply, asking.model.name
        shared: dict[str, Any] = {
            "step": request.step,
            "llm_provider": name.provider,
            "llm_temperature": request.sampling.temperature,
            "prompt_hash": asking.prompt_hash,
            "request_hash": request.hash,
            "invocation_id": call.invocation_id,
            "attempt": request.attempt,
            "span_id": call.span_id,
            "duration_ms": call.duration_us / 1_000,
        }
        if reply is None:
            if following is not None:
                shared |= {"again_ms": following.again_ms, "next_model": following.model}
            return _failed(asking, outcome, shared), ()
        usage = reply.usage or _NONE
        cost = self._prices.cost(name, reply.model, usage, self._clock.now()) if reply.usage is not None else None
        packed = pack(encode(reply.message))
        event = CommandCommitted(
            result=packed.inline,
            result_blob=packed.ref,
            llm_model=reply.model,
            token_count=usage.total,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
            cache_written_tokens=usage.cache_written,
            cache_written_hour_tokens=usage.cache_written_hour,
            reasoning_tokens=usage.reasoning,
            usage=reply.usage_raw,
            cost=cost.amount if cost else None,
            price_table=cost.table if cost else "",
            finish_reason=reply.stop,
            finish_raw=reply.stop_raw,
            first_token_ms=None if reply.first_us is None else reply.first_us / 1_000,
            response_id=reply.response_id,
            request_id=reply.request_id,
            uncertain=reply.usage is None,
            **shared,
        )
        return event, packed.blobs

    def _next(self, asking: ModelAttempt, outcome: Outcome) -> Next | None:
        """The attempt that follows: when the provider wants it, or later each time; None: there is none."""
        request, fault = asking.request, asking.fault
        if asking.reply is not None or outcome.code is None or request.via is not None:
            return None
        current = str(asking.model.name)
        first_choice = (request.wanted or request.model or self._default) if request.job is not None else ""
        following = self._fallbacks.after(first_choice, request.recipe, current, outcome.code, request.failed)
        if following is None or following.model or fault is None or fault.after_s is None:
            return following
        return following._replace(again_ms=max(following.again_ms, int(fault.after_s * 1_000)))


def _failed(asking: ModelAttempt, outcome: Outcome, shared: dict[str, Any]) -> CommandCommitted:
    fault, code = asking.fault, outcome.code
    error = ErrorInfo(
        code=code.name if code else "",
        message=outcome.reason,
        remedy=outcome.remedy,
        retryable=code.retryable if code else False,
        step=asking.request.step,
    )
    return CommandCommitted(
        llm_model=asking.model.name.model,
        outcome="timeout" if outcome.cause == "Timeout" else "failure",
        error=error,
        request_id=fault.request_id if fault else "",
        uncertain=fault is None or fault.billed == "maybe",
        **shared,
    )


def _given_up(outcome: Outcome, attempts: int, stream: str) -> Outcome:
    """The outcome of the last attempt, which says how many there were."""
    reason = f"{outcome.reason} (asked {attempts} times)" if attempts > 1 else outcome.reason
    kind, _, job = stream.partition("/")
    later = _LATER.format(how=f": `remit retry {job}` makes a new job" if kind == "job" else "")
    retryable = outcome.code is not None and outcome.code.retryable
    return replace(outcome, reason=reason, remedy=later if retryable else outcome.remedy)


_MAX_NAME: Final = 200


class RecordRefusal:
    """Journals a blocked outcome as `gate_refused`."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._texts = KeptTexts()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the call proceed; record it if it was refused before it was announced."""
        call.stage = "record_refusal"
        outcome = await proceed(call)
        if outcome.status == "blocked" and not call.invocation_id and outcome.code is not None:
            if outcome.code in LIMITED and (call.request.repeats or call.request.line is not None):
                return replace(outcome, again=call.request.repeats)  # its turn comes; nothing has changed
            if call.request.repeats:
                # To refuse the repetition would say that nothing happened, and the attempt before may have.
                return in_doubt(outcome.reason, outcome.remedy)
            await self._record(call, outcome, outcome.code)
        return outcome

    async def _record(self, call: Call, outcome: Outcome, code: Code) -> None:
        request, untrusted = call.request, packed_untrusted(call.untrusted)
        args = pack(call.encoded) if call.encoded else Packed(UNSET, UNSET, ())
        refusal = GateRefused(
            step=request.step,
            tool_name=_name_of(call),
            code=code.name,
            reason=outcome.reason,
            remedy=outcome.remedy,
            stage=call.stage,
            arguments_hash=call.asked_hash,
            principal=request.principal,
            rule_id=call.rule_id,
            policy_hash=call.policy.hash,
            confirmation=outcome.confirmation or "",
            model_call=call.asking is not None,
            call_id=request.conversation.call if request.conversation else "",
            client=request.client,
            untrusted=untrusted.inline,
            untrusted_blob=untrusted.ref,
            args=args.inline,
            args_blob=args.ref,
            decided_at=call.decided_at,
            facts=call.facts,
            policy_kept=True,
            again_ms=outcome.again_ms,
            **_known(call),
        )
        if request.provenance is not None:
            request.provenance.refused(refusal)
        confirmation = call.confirmation if call.writer.failure is None else None
        if confirmation is not None and confirmation.state in {"pending", "approved"} and not _may_come_again(code):
            # Its question must be closed. Before the record, since what is recorded as refused is not looked
            # at again; after a crash in between, the next pass refuses it.
            await self._confirmations.withdraw(confirmation, outcome.reason)
        blobs = (*untrusted.blobs, *args.blobs, *self._texts.rules(call.policy, call.writer))
        if refusal.request_schema_hash:
            blobs += self._texts.schemas(call.tool, call.writer)
        await call.journal.append(call.writer, refusal, synced=request.leaves, blobs=blobs)


def _may_come_again(code: Code) -> bool:
    """Tell whether what was approved can still be made: the same call, once a tool or a limit lets it pass."""
    return code is Code.MCP_REQUIRED_UNAVAILABLE or code in LIMITED


def _known(call: Call) -> dict[str, Any]:
    """Return what the gate knew of the tool, if it came so far as to find one."""
    tool: Tool | None = getattr(call, "tool", None)
    if tool is None:
        return {}
    return {
        "provider_id": tool.meta.provider_id,
        "alias": tool.meta.alias,
        "tool_version": tool.meta.version,
        "capability_level": int(tool.meta.capability_level),
        "risk_level": tool.meta.risk_level,
        "side_effect": tool.meta.side_effect,
        "confirms": tool.meta.requires_confirm,
        "request_schema_hash": tool.input.hash,
        "request_hash": call.request_hash if call.asking is None else "",
        "contract_hash": tool.contract_hash,
        "prompt_hash": tool.prompt_hash,
    }


def _name_of(call: Call) -> str:
    """Return the tool's full name; as it was asked for if there is none, unless no event can hold that."""
    tool: Tool | None = getattr(call, "tool", None)
    if tool is not None and call.asking is None:
        return tool.meta.name
    name = call.request.tool
    try:
        name.encode()
    except UnicodeEncodeError:
        return line(name, _MAX_NAME)
    return name if len(name) <= _MAX_NAME else line(name, _MAX_NAME)
