"""RecordOutcome: on the way back, the result is checked, its evidence kept, and the outcome recorded.

RecordReply: on the way back, the model's answer, or why there is none, is recorded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.gateway.asking import Asking
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import LIMITED, Outcome, answered
from remit.gateway.result import Checked, Kept, Results, StepOutcome, events_of, remedy_of
from remit.journal.blobs import pack
from remit.journal.effects import COMMITTED, LOST, UNSENT_CAUSES
from remit.journal.event import Blob
from remit.journal.kinds import CommandCommitted, ErrorInfo, ToolInvocationFinished
from remit.large import is_large
from remit.models.message import digest_of, encode
from remit.models.reply import Usage
from remit.tools.provider import ToolResult

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.effects import Effect


_UNCHECKED: Final = Checked()
_UNSENT_ATTEMPTS: Final = 3
"""Attempts in all at a call that does not reach its provider, whatever the tool allows."""


class RecordOutcome:
    """Records `tool_invocation_finished`, and `evidence_attached` before it."""

    def __init__(self, services: Services) -> None:
        self._results = Results(services.limits, services.journal.clock, services.schema_gate)

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the call run, then record its outcome; the value is given on as a replay would give it."""
        outcome = await proceed(call)
        effect = outcome.effect
        if outcome.ok:
            checked = await self._checked(call)
            effect = COMMITTED if call.tool.meta.side_effects else effect
        else:
            checked = self._attached(call)
        if call.request.repeats and effect.known == "none":
            effect = LOST  # this attempt had none; that of the one before is unknown
        outcome = checked.failure or outcome
        step_outcome = _step_outcome(call, outcome, effect)
        outcome = replace(
            outcome,
            effect=effect,
            remedy=remedy_of(outcome, effect),
            value=checked.value,
            evidence=checked.kept.items,
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
        )
        await call.journal.append(call.writer, *events, synced=call.request.leaves, blobs=blobs)
        if call.request.provenance is not None:
            for event in events:
                if isinstance(event, ToolInvocationFinished):
                    call.request.provenance.finished(event)
        return outcome

    def _attached(self, call: Call) -> Checked:
        """Return what the provider attached to a failure; what cannot be kept of it leaves the failure as it is."""
        if not isinstance(call.result, ToolResult):
            return _UNCHECKED
        kept = self._results.evidence_of(call.tool, call.result)
        return Checked(kept=kept) if isinstance(kept, Kept) else _UNCHECKED

    async def _checked(self, call: Call) -> Checked:
        """Return what was given, checked: a large value in a thread, so that it holds no one else up."""
        if isinstance(call.result, ToolResult) and is_large(call.result.value):
            return await asyncio.to_thread(self._results.check, call.tool, call.result)
        return self._results.check(call.tool, call.result)


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


_NONE: Final = Usage()
_LATER: Final = "Ask again later{how}. models.attempts says how often a question is asked."


class RecordReply:
    """Records `command_committed`; the reply is given on as a replay would give it."""

    def __init__(self, services: Services) -> None:
        self._prices = services.prices
        self._retry = services.model_retry
        self._clock = services.journal.clock

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the model be asked, then settle what was reserved for it."""
        outcome = await proceed(call)
        asking = call.asking
        if asking is None:
            return outcome
        again_ms = self._again_ms(asking, outcome)
        if asking.reply is None and again_ms is None:
            outcome = _given_up(outcome, asking.request.attempt, call.writer.stream)
        committed, blobs = self._committed(call, asking, outcome, again_ms)
        asking.request.spent.settle(asking.started, committed)
        if asking.reply is not None:
            asking.request.known.messages.add(digest_of(asking.reply.message))
        await call.journal.append(call.writer, committed, synced=False, blobs=blobs)
        value = None if asking.reply is None else answered(committed, asking.reply.message)
        return replace(
            outcome,
            value=value,
            invocation_id=call.invocation_id,
            again_ms=committed.again_ms,
            duration_us=call.duration_us,
        )

    def _committed(
        self, call: Call, asking: Asking, outcome: Outcome, again_ms: int | None
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
            return _failed(asking, outcome, shared | {"again_ms": again_ms}), ()
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

    def _again_ms(self, asking: Asking, outcome: Outcome) -> int | None:
        """Milliseconds until the next attempt: what the provider wants, or longer each time; None: there is none."""
        failed, fault = asking.request.failed, asking.fault
        if asking.reply is not None or outcome.code is None or not outcome.code.retryable:
            return None
        if failed >= self._retry.attempts:
            return None
        wanted = int(fault.after_s * 1_000) if fault is not None and fault.after_s is not None else 0
        return max(self._retry.delay_ms(failed), wanted)


def _failed(asking: Asking, outcome: Outcome, shared: dict[str, Any]) -> CommandCommitted:
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
