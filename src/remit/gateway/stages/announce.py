"""Announce: the intent is in the journal before anything happens (rule 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.gateway.announcing import announce, decide_again, idempotency_key, overtaken
from remit.gateway.call import Call, Proceed
from remit.gateway.context import trace_of
from remit.gateway.conversation import packed_untrusted
from remit.gateway.outcome import Outcome
from remit.gateway.result import warned
from remit.gateway.schema_gate import CALL_ARGS
from remit.gateway.schemas import KeptTexts
from remit.ids import new_id, span_id
from remit.journal.blobs import Packed, pack
from remit.journal.kinds import SchemaGateWarned, ToolInvocationStarted
from remit.policy.globs import name_matches

if TYPE_CHECKING:
    from remit.gateway.schema_gate import Misfit
    from remit.gateway.services import Services
    from remit.tools.meta import ToolMeta


class Announce:
    """Records `tool_invocation_started`: flushed to disk before a side effect, merely queued before a read."""

    def __init__(self, services: Services) -> None:
        self._clock = services.journal.clock
        self._confirmations = services.confirmations
        self._limits = services.limits
        self._kept = KeptTexts()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `invocation_id`, `span_id` and `idempotency_key`; spend the approval in the same transaction.

        If what allowed the call has ended meanwhile, set `outrun` instead: then policy decides again.
        """
        if why := await overtaken(call, self._confirmations, self._clock.now()):
            return decide_again(call, self._confirmations, why)
        call.invocation_id, call.span_id = new_id("inv"), span_id()
        call.idempotency_key = idempotency_key(call)
        if not call.counted and call.request.attempt == 1:
            calls, name = call.writer.announced, call.tool.meta.name
            calls[name] = calls.get(name, 0) + 1
        args, untrusted = pack(call.encoded), packed_untrusted(call.untrusted)
        started = self._started(call, args, untrusted)
        announced = (started,) if call.misfit is None else (_warned(call, call.misfit), started)
        blobs = (*args.blobs, *untrusted.blobs, *self._kept.schemas(call.tool, call.writer))
        blobs += self._kept.rules(call.policy, call.writer)
        await announce(call, announced, self._confirmations, synced=call.tool.meta.side_effects, blobs=blobs)
        if call.request.provenance is not None:
            call.request.provenance.started(started)
        return await proceed(call)

    def _started(self, call: Call, args: Packed, untrusted: Packed) -> ToolInvocationStarted:
        request, meta, confirmation = call.request, call.tool.meta, call.confirmation
        return ToolInvocationStarted(
            invocation_id=call.invocation_id,
            step=request.step,
            tool_name=meta.name,
            arguments_hash=call.arguments_hash,
            idempotency_key=call.idempotency_key,
            tool_version=meta.version,
            request_schema_hash=call.tool.input.hash,
            args=args.inline,
            args_blob=args.ref,
            request_hash=call.request_hash,
            capability_level=int(meta.capability_level),
            risk_level=meta.risk_level,
            provider_id=meta.provider_id,
            side_effect=meta.side_effect,
            repeatable=meta.repeatable,
            attempt=request.attempt,
            principal=request.principal,
            rule_id=call.rule_id,
            policy_hash=call.policy.hash,
            confirmation=confirmation.id if confirmation else "",
            contract_hash=call.tool.contract_hash,
            prompt_hash=call.tool.prompt_hash,
            call_id=request.conversation.call if request.conversation else "",
            output_trusted=self._trusts(call),
            untrusted_input=call.untrusted_input,
            untrusted=untrusted.inline,
            untrusted_blob=untrusted.ref,
            trace_id=call.request.trace_id or trace_of(call.writer.stream),
            span_id=call.span_id,
            skills=request.skills,
            client=request.client,
            confirms=meta.requires_confirm,
            decided_at=call.decided_at,
            facts=call.facts,
            policy_kept=True,
        )

    def _trusts(self, call: Call) -> bool:
        """Say whether what the tool returns is trusted: as settings say, else as the tool does, and by what goes in."""
        limits, meta = self._limits, call.tool.meta
        if _is_named(meta, limits.untrusted_output):
            return False
        if meta.output_trusted == "always" or _is_named(meta, limits.always_trusted_output):
            return True
        if call.request.conversation is not None and call.request.conversation.vouched:
            return True
        return (meta.output_trusted or _is_named(meta, limits.trusted_output)) and not call.untrusted_input


def _is_named(meta: ToolMeta, patterns: tuple[str, ...]) -> bool:
    return any(name_matches(pattern, meta.name) for pattern in patterns)


def _warned(call: Call, misfit: Misfit) -> SchemaGateWarned:
    return warned(
        misfit,
        CALL_ARGS,
        step=call.request.step,
        tool_name=call.tool.meta.name,
        schema_hash=call.tool.input.hash,
        invocation_id=call.invocation_id,
    )
