"""Announce: the intent is in the journal before anything happens (rule 3).

AnnounceModel: what a model will be asked is in the journal before it is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import SECOND
from remit.errors import JournalError
from remit.gateway.call import Call, Proceed, idempotency_key, outrun
from remit.gateway.context import trace_of
from remit.gateway.conversation import NOTHING, packed_untrusted
from remit.gateway.model_request import ModelAttempt
from remit.gateway.outcome import Outcome
from remit.gateway.result import warned
from remit.gateway.schema_gate import CALL_ARGS, KeptTexts
from remit.gateway.takings import stream_of
from remit.ids import new_id, span_id
from remit.journal.blobs import Packed, pack
from remit.journal.event import Blob
from remit.journal.kinds import CommandStarted, MessageKept, SchemaGateWarned, ToolInvocationStarted
from remit.policy.globs import name_matches

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.confirmations import Confirmations
    from remit.gateway.schema_gate import Misfit
    from remit.gateway.services import Services
    from remit.journal.kinds import Payload
    from remit.tools.meta import ToolMeta


_FRESH: Final = SECOND
"""Microseconds for which a decision of policy holds until its call is announced."""


def announce(
    call: Call, announced: tuple[Payload, ...], confirmations: Confirmations, *, synced: bool, blobs: tuple[Blob, ...]
) -> Awaitable[object]:
    """Record that a call begins; `synced`: on disk before this returns. Raises JournalError."""
    confirmation = call.confirmation
    if confirmation is None or confirmation.state != "approved":
        return call.journal.append(call.writer, *announced, synced=synced, blobs=blobs)
    return _spend(call, announced, confirmations, confirmation, blobs)


async def _spend(
    call: Call,
    announced: tuple[Payload, ...],
    confirmations: Confirmations,
    confirmation: Confirmation,
    blobs: tuple[Blob, ...],
) -> None:
    used = confirmations.use(confirmation, call.invocation_id)
    try:
        await call.journal.commit(call.writer.draft(*announced), used, synced=True, blobs=blobs)
    except JournalError:
        confirmations.unclaim(confirmation)
        raise


async def overtaken(call: Call, confirmations: Confirmations, clock: Clock) -> str:
    """Return why what allowed a call may not hold any more, just before it is announced; empty: it holds."""
    now = clock.now()
    if now - call.query.now > _FRESH:
        return "policy decided too long ago"  # while a dependency was waited for: rules and facts may have changed
    if call.decision.until is not None and now >= call.decision.until:
        return "the remembered approval has ended"
    confirmation = call.confirmation
    if confirmation is None or confirmation.state != "approved":
        return ""
    if not confirmation.usable(now):
        return "the approval has ended"
    return "" if await confirmations.unchanged(confirmation) else "the approval was taken back"


class Announce:
    """Records `tool_invocation_started`: flushed to disk before a side effect, merely queued before a read."""

    def __init__(self, services: Services) -> None:
        self._clock = services.journal.clock
        self._confirmations = services.confirmations
        self._limits = services.limits
        self._texts = KeptTexts()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `invocation_id`, `span_id` and `idempotency_key`; spend the approval in the same transaction.

        If what allowed the call has ended meanwhile, set `outrun` instead: then policy decides again.
        """
        call.stage = "announce"
        if reason := await overtaken(call, self._confirmations, self._clock):
            return outrun(call, self._confirmations, reason)
        call.invocation_id, call.span_id = new_id("inv"), span_id()
        call.idempotency_key = idempotency_key(call)
        if not call.counted and call.request.attempt == 1:
            calls, name = call.writer.announced, call.tool.meta.name
            calls[name] = calls.get(name, 0) + 1
        args, untrusted = pack(call.encoded), packed_untrusted(call.untrusted) if call.untrusted else NOTHING
        blobs = (*args.blobs, *untrusted.blobs, *self._texts.schemas(call.tool, call.writer))
        blobs += self._texts.rules(call.policy, call.writer)
        started = self._started(call, args, untrusted)
        announced = (started,) if call.misfit is None else (_warned(call, call.misfit), started)
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
            alias=meta.alias,
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
            repaired=request.repaired,
            confirms=meta.requires_confirm,
            decided_at=call.decided_at,
            facts=call.facts,
            policy_kept=True,
            secrets=call.secrets.versions if call.secrets is not None else {},
            limits=tuple([stream_of(part.key) for part in call.parts]) if call.parts else (),
        )

    def _trusts(self, call: Call) -> bool:
        """Say whether what the tool returns is trusted: as settings say, else as the tool does, and by what goes in."""
        limits, meta = self._limits, call.tool.meta
        if limits.untrusted_output and _is_named(meta, limits.untrusted_output):
            return False
        always = limits.always_trusted_output
        if meta.output_trusted == "always" or (always and _is_named(meta, always)):
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


class AnnounceModel:
    """Records `command_started`, with the messages that are new and references to all others."""

    def __init__(self, services: Services) -> None:
        self._confirmations = services.confirmations
        self._allowance = services.allowance
        self._clock = services.journal.clock
        self._texts = KeptTexts()

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        """Set `invocation_id`, `span_id` and `idempotency_key`, and the event; spend the approval with it."""
        call.stage = "announce_model"
        asking = call.asking
        if asking is None:
            return await proceed(call)
        if reason := await overtaken(call, self._confirmations, self._clock):
            return outrun(call, self._confirmations, reason)
        call.invocation_id, call.span_id = new_id("inv"), span_id()
        call.idempotency_key = idempotency_key(call)
        asking.started, blobs = self._started(call, asking)
        blobs += self._texts.rules(call.policy, call.writer)
        # Money is spent next: if the intent were lost with the machine, so would be the count of it.
        await announce(call, (asking.started,), self._confirmations, synced=True, blobs=blobs)
        self._allowance.announced(asking.claim, call.invocation_id)
        known = asking.request.known
        known.tips.add(asking.request.thread.tip)
        known.messages.update(message.digest for message in asking.started.added)
        return await proceed(call)

    def _started(self, call: Call, asking: ModelAttempt) -> tuple[CommandStarted, tuple[Blob, ...]]:
        request, sending, confirmation = asking.request, asking.sending, call.confirmation
        added, blobs = _added(asking)
        prompt = pack(msgspec.json.encode(sending.ask.prompt))
        name, after = asking.model.name, _after(asking)
        first = request.wanted or next(iter(asking.passed), "")
        event = CommandStarted(
            invocation_id=call.invocation_id,
            step=request.step,
            request_hash=request.hash,
            idempotency_key=call.idempotency_key,
            llm_model=name.model,
            llm_provider=name.provider,
            llm_url=name.url,
            asked=first if first != str(name) else "",
            llm_temperature=request.sampling.temperature,
            prompt_hash=asking.prompt_hash,
            prompt=prompt.inline,
            prompt_blob=prompt.ref,
            attempt=request.attempt,
            principal=request.principal,
            rule_id=call.rule_id,
            policy_hash=call.policy.hash,
            trace_id=call.request.trace_id or trace_of(call.writer.stream),
            span_id=call.span_id,
            api=sending.api,
            wire_hash=sending.hash,
            after=after,
            after_job=request.known.elsewhere.get(after, ""),
            added=added,
            left_out=dict(sending.left_out),
            passed=asking.passed,
            confirmation=confirmation.id if confirmation else "",
            reserved_tokens=asking.reserved_tokens,
            reserved_cost=asking.reserved_cost,
            budgets=asking.claim.keys,
            skills=request.skills,
            policy_kept=True,
        )
        return event, (*blobs, *prompt.blobs, *_referred(asking))


def _after(asking: ModelAttempt) -> str:
    """The newest recorded conversation that this one continues."""
    thread = asking.request.thread
    fresh = thread.since(asking.request.known.tips.__contains__)
    before = fresh[0].before if fresh else thread
    return before.tip if before is not None else ""


def _added(asking: ModelAttempt) -> tuple[tuple[MessageKept, ...], tuple[Blob, ...]]:
    """The new messages; the body of one that is recorded already, such as an answer, stands there."""
    known = asking.request.known
    added: list[MessageKept] = []
    blobs: list[Blob] = []
    for node in asking.request.thread.since(known.tips.__contains__):
        if node.digest in known.messages:
            added.append(MessageKept(digest=node.digest))
            continue
        packed = pack(node.encoded)
        added.append(MessageKept(digest=node.digest, body=packed.inline, body_blob=packed.ref))
        blobs += packed.blobs
    return tuple(added), tuple(blobs)


def _referred(asking: ModelAttempt) -> list[Blob]:
    """Tools and the form of the answer, kept by the digests that the prompt names; the same ones are kept once."""
    ask = asking.sending.ask
    blobs = [Blob(ask.tools.digest, ask.tools.encoded)] if ask.tools.specs else []
    if ask.output is not None:
        blobs.append(Blob(ask.output.digest, ask.output.encoded))
    return blobs
