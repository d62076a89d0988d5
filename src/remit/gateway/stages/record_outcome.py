"""RecordOutcome: on the way back, the result is checked, its evidence kept, and the outcome recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.gateway.call import Call, Proceed
from remit.gateway.evidence import Kept
from remit.gateway.outcome import LIMITED, Outcome
from remit.gateway.result import Checked, Results, StepOutcome, events_of, remedy_of
from remit.journal.effects import COMMITTED, LOST, UNSENT_CAUSES
from remit.journal.kinds import ToolInvocationFinished
from remit.large import is_large
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
