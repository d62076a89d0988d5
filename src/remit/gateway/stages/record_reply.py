"""RecordReply: on the way back, the model's answer, or why there is none, is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.gateway.asking import Asking
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome
from remit.gateway.replies import answered
from remit.journal.blobs import pack
from remit.journal.event import Blob
from remit.journal.kinds import CommandCommitted, ErrorInfo
from remit.models.message import digest_of, encode
from remit.models.reply import Usage

if TYPE_CHECKING:
    from remit.gateway.services import Services

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
