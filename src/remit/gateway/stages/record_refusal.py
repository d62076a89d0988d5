"""RecordRefusal: every refusal below leaves a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.conversation import packed_untrusted
from remit.gateway.outcome import Outcome, in_doubt
from remit.journal.kinds import GateRefused
from remit.redact import line

if TYPE_CHECKING:
    from remit.gateway.services import Services

_MAX_NAME: Final = 200


class RecordRefusal:
    """Journals a blocked outcome as `gate_refused`."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the call proceed; record it if it was refused before it was announced."""
        outcome = await proceed(call)
        if outcome.status == "blocked" and not call.invocation_id and outcome.code is not None:
            if call.request.repeats:
                # To refuse the repetition would say that nothing happened, and the attempt before may have.
                return in_doubt(outcome.reason, outcome.remedy)
            await self._record(call, outcome, outcome.code)
        return outcome

    async def _record(self, call: Call, outcome: Outcome, code: Code) -> None:
        request, untrusted = call.request, packed_untrusted(call.untrusted)
        refusal = GateRefused(
            step=request.step,
            tool_name=_recordable(request.tool),
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
            untrusted=untrusted.inline,
            untrusted_blob=untrusted.ref,
        )
        if request.provenance is not None:
            request.provenance.refused(refusal)
        found = call.confirmation if call.writer.failure is None else None
        if found is not None and found.state in {"pending", "approved"} and code is not Code.MCP_REQUIRED_UNAVAILABLE:
            # Its question must be closed. Before the record, since what is recorded as refused is not looked
            # at again; after a crash in between, the next pass refuses it.
            await self._confirmations.withdraw(found, outcome.reason)
        await call.journal.append(call.writer, refusal, synced=request.leaves, blobs=untrusted.blobs)


def _recordable(name: str) -> str:
    """A tool's name as it was asked for, unless it is one that no tool can have and no event can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return line(name, _MAX_NAME)
    return name if len(name) <= _MAX_NAME else line(name, _MAX_NAME)
