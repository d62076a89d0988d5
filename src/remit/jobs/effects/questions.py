"""Questions of a job to people: approvals the gateway asked for, and those a recipe asks itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from remit.gateway.confirmation import KIND, Confirmation, binding, stream_of
from remit.jobs.effects.port import Wait, WaitAnswer
from remit.journal.event import HeadQuery
from remit.journal.kinds import ConfirmationRequested

if TYPE_CHECKING:
    from remit.gateway.confirmations import Confirmations
    from remit.journal.event import Blob
    from remit.journal.journal import Journal
    from remit.journal.writer import Draft, StreamWriter

_TITLE: Final = 120
_OPEN: Final = 1_000
"""Questions of one job that are ended with it; more are open in no job that people could still answer."""


class Questions:
    """Asks, and looks for answers, on behalf of one job."""

    def __init__(self, journal: Journal, confirmations: Confirmations, writer: StreamWriter) -> None:
        self.is_asked = False
        """Whether the job ever asked anyone."""
        self._journal = journal
        self._confirmations = confirmations
        self._writer = writer

    def draft(self, wait: Wait, question: dict[str, Any], principal: str) -> tuple[Draft, tuple[Blob, ...]]:
        """Draft the question that a recipe asks, to be committed with the record that the recipe waits for it."""
        self.is_asked = True
        request = ConfirmationRequested(
            confirmation=wait.key,
            step=wait.step,
            digest=binding(
                stream=self._writer.stream,
                step=wait.step,
                tool="",
                contract_hash="",
                args=question,
                principal=principal,
                policy_hash="",
            ),
            question=wait.reason,
            principal=principal,
            expires_at=wait.due_at,
        )
        return self._confirmations.open(self._writer.stream, request, question["details"], wait.reason[:_TITLE])

    async def expires_at(self, confirmation: str) -> int | None:
        """Return when a confirmation can no longer be answered."""
        self.is_asked = True
        question = await self._confirmations.newest(self._writer.stream, confirmation)
        return question.request.expires_at if question else None

    async def answer(self, wait: Wait) -> tuple[WaitAnswer, int] | None:
        """Return what happened to the confirmation a wait names; None: still open."""
        stream = stream_of(self._writer.stream, wait.key)
        confirmation = await self._confirmations.load(stream)
        while confirmation is not None and confirmation.state == "pending":
            if not confirmation.lapsed(self._journal.clock.now()):
                return None
            # Recorded, so that an approver whose clock is behind cannot approve what the job takes as unanswered.
            await self._confirmations.expire(confirmation)
            confirmation = await self._confirmations.load(stream)
        if confirmation is None:
            return None
        last = confirmation.last
        by, reason = (last.by, last.reason) if last else ("", "")
        if confirmation.state == "expired":
            reason = "no one answered in time"
        return WaitAnswer(payload={"approved": _approved(confirmation), "by": by, "reason": reason}, by=by), 0

    async def close(self, reason: str) -> None:
        """End what is still open, since no answer is needed any more: withdrawn, or expired if its time was over."""
        open_ones = HeadQuery(kind=KIND, states=("pending",), prefix=stream_of(self._writer.stream, ""), limit=_OPEN)
        for head in await self._journal.heads(open_ones):
            confirmation = await self._confirmations.load(head.stream)
            while (
                confirmation is not None
                and confirmation.state == "pending"
                and not await self._end(confirmation, reason)
            ):
                confirmation = await self._confirmations.load(head.stream)  # a person was faster

    async def _end(self, confirmation: Confirmation, reason: str) -> bool:
        if confirmation.lapsed(self._journal.clock.now()):
            return await self._confirmations.expire(confirmation)
        return await self._confirmations.withdraw(confirmation, reason)


def _approved(confirmation: Confirmation) -> bool:
    return confirmation.state in {"approved", "used"}
