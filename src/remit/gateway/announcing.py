"""Recording an intent before anything happens, and spending the approval it rests on in the same transaction."""

from __future__ import annotations

from collections.abc import Awaitable
from hashlib import sha256
from typing import TYPE_CHECKING

from remit.errors import JournalError

if TYPE_CHECKING:
    from remit.gateway.call import Call
    from remit.gateway.confirmation import Confirmation
    from remit.gateway.confirmations import Confirmations
    from remit.journal.event import Blob
    from remit.journal.kinds import Payload


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


def idempotency_key(call: Call) -> str:
    """SHA-256 over stream, step, tool and arguments; not the attempt (contract: versioning, "Identity").

    An attempt that repeats recorded arguments keeps their key: it is the same intent, maybe in other words.
    """
    if call.kept_key:
        return call.kept_key
    intent = f"{call.writer.stream}\0{call.request.step}\0{call.tool.meta.name}\0{call.arguments_hash}"
    return sha256(intent.encode()).hexdigest()
