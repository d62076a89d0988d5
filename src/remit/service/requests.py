"""Requests under an idempotency key: each is taken once, and every repetition gets the first answer.

What a request starts gets an identifier computed from the request's own. So a repetition after a crash between taking
and answering meets what the first one started.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, StateError
from remit.ids import encode
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch
from remit.journal.kinds import RequestAnswered, RequestTaken, decode
from remit.journal.proven import ProvenStream

if TYPE_CHECKING:
    from remit.journal.journal import Journal

KIND: Final = "request"
"""The kind of their streams."""


class RequestAnswer(msgspec.Struct, frozen=True):
    """The answer of a request."""

    status: int
    body: bytes
    """JSON; empty if the answer has no body."""


class TakenRequest(msgspec.Struct, frozen=True):
    """A request that was taken."""

    request: str
    answered: RequestAnswer | None
    """Its recorded answer, if it was answered before."""


class Requests:
    """The requests of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def take(self, operation: str, key: str, body_hash: str, principal: str) -> TakenRequest:
        """Take a request, or find it as it was taken before.

        Raises StateError (IDEMPOTENCY_MISMATCH), and ChainBrokenError where its record was not written by Remit.
        """
        request = "req_" + _digits(f"{principal}\0{operation}\0{key}")
        taken = RequestTaken(request=request, operation=operation, body_hash=body_hash, principal=principal)
        patch = HeadPatch(state="taken", labels={"operation": operation})
        try:
            await self._journal.create(_stream(request), KIND, taken, patch=patch)
        except AppendConflictError:
            return await self._found(request, body_hash)
        return TakenRequest(request, None)

    async def answer(self, request: str, answered: RequestAnswer) -> RequestAnswer:
        """Record the answer; if the request was answered at the same moment, that answer counts and is returned."""
        head = await self._journal.head(_stream(request))
        packed = pack(answered.body or b"null")
        event = RequestAnswered(status=answered.status, answer=packed.inline, answer_blob=packed.ref)
        writer = self._journal.writer(_stream(request), KIND, head)
        patch = HeadPatch(state="answered", closed=True)
        if head is not None and head.state == "taken":
            try:
                await self._journal.append(writer, event, synced=True, patch=patch, blobs=packed.blobs)
            except AppendConflictError:
                pass  # another process was faster
            else:
                return answered
        return await self._answered(request) or answered

    async def _found(self, request: str, body_hash: str) -> TakenRequest:
        for event in await ProvenStream(self._journal, _stream(request)).more():
            payload = decode(event.kind, event.data)
            if isinstance(payload, RequestTaken) and payload.body_hash != body_hash:
                reason = "the Idempotency-Key was used for another request"
                raise StateError(reason, code=Code.IDEMPOTENCY_MISMATCH, remedy="Use a new key for another request.")
        return TakenRequest(request, await self._answered(request))

    async def _answered(self, request: str) -> RequestAnswer | None:
        for event in await ProvenStream(self._journal, _stream(request)).more():
            payload = decode(event.kind, event.data)
            if isinstance(payload, RequestAnswered):
                return RequestAnswer(
                    payload.status, await self._journal.value(payload.answer, payload.answer_blob) or b""
                )
        return None


def started_by(request: str, prefix: str, number: int = 0) -> str:
    """The identifier of what a request starts: the same whenever and wherever it is repeated."""
    return f"{prefix}_{_digits(f'{request}/{number}')}"


def _stream(request: str) -> str:
    return f"{KIND}/{request}"


def _digits(text: str) -> str:
    return encode(int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], "big"))
