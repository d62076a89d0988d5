"""RecordRefusal: every refusal below leaves a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.conversation import packed_untrusted
from remit.gateway.outcome import LIMITED, Outcome, in_doubt
from remit.gateway.schema_gate import KeptTexts
from remit.journal.blobs import Packed, pack
from remit.journal.kinds import UNSET, GateRefused
from remit.redact import line

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.tools.catalog import Tool

_MAX_NAME: Final = 200


class RecordRefusal:
    """Journals a blocked outcome as `gate_refused`."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._kept = KeptTexts()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Let the call proceed; record it if it was refused before it was announced."""
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
        found = call.confirmation if call.writer.failure is None else None
        if found is not None and found.state in {"pending", "approved"} and not _may_come_again(code):
            # Its question must be closed. Before the record, since what is recorded as refused is not looked
            # at again; after a crash in between, the next pass refuses it.
            await self._confirmations.withdraw(found, outcome.reason)
        blobs = (*untrusted.blobs, *args.blobs, *self._kept.rules(call.policy, call.writer))
        if refusal.request_schema_hash:
            blobs += self._kept.schemas(call.tool, call.writer)
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
