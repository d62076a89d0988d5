"""Recording an intent before anything happens, and spending the approval it rests on in the same transaction."""

from __future__ import annotations

from collections.abc import Awaitable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway.outcome import Outcome, refused

if TYPE_CHECKING:
    from remit.gateway.call import Call
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.confirmations import Confirmations
    from remit.journal.event import Blob
    from remit.journal.kinds import Payload

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


async def overtaken(call: Call, confirmations: Confirmations, now: int) -> str:
    """Return why what allowed a call may not hold any more, just before it is announced; empty: it holds."""
    if now - call.query.now > _FRESH:
        return "policy decided too long ago"  # while a dependency was waited for: rules and facts may have changed
    if call.decision.until is not None and now >= call.decision.until:
        return "the remembered approval has ended"
    found = call.confirmation
    if found is None or found.state != "approved":
        return ""
    if not found.usable(now):
        return "the approval has ended"
    return "" if await confirmations.unchanged(found) else "the approval was taken back"


def decide_again(call: Call, confirmations: Confirmations, reason: str) -> Outcome:
    """Send a call back to policy: what it was refused with counts only if that happens too often."""
    call.outrun = True
    if call.confirmation is not None:
        confirmations.unclaim(call.confirmation)
    return refused(Code.POLICY_DENIED, f"{call.tool.meta.name}: {reason}", "Try again later.")


def idempotency_key(call: Call) -> str:
    """Return the key of a call. An attempt that repeats recorded arguments keeps theirs: it is the same intent."""
    return call.kept_key or key_of(call.writer.stream, call.request.step, call.tool.meta.name, call.arguments_hash)


def key_of(stream: str, step: str, tool: str, arguments_hash: str) -> str:
    """SHA-256 over stream, step, tool and arguments; not the attempt (contract: versioning, "Identity")."""
    return sha256(f"{stream}\0{step}\0{tool}\0{arguments_hash}".encode()).hexdigest()
