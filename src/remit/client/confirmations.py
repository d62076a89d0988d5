"""Questions to people behind a server, and the approvals that it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from remit.api.routes.confirmations import MOST, DecideBody, PendingQuery
from remit.client.person import only_oneself
from remit.client.twin import Twin
from remit.errors import UsageError
from remit.gateway.proof import ProofKind
from remit.record.views import ConfirmationView
from remit.service.confirmations import Confirmations, QuestionFilter


class RemoteConfirmations(Twin, Confirmations):
    """The questions of a server."""

    async def pending(
        self,
        job: str | None = None,
        *,
        only: QuestionFilter | None = None,
        limit: int | None = None,
        after: str = "",
        described: bool = True,  # noqa: ARG002 - the server describes them all
    ) -> list[ConfirmationView]:
        wanted = only or QuestionFilter()
        found: list[ConfirmationView] = []
        while limit is None or len(found) < limit:
            most = MOST if limit is None else min(limit - len(found), MOST)
            query = PendingQuery(
                job=job or "",
                tool=wanted.tool,
                principal=wanted.principal,
                recipe=wanted.recipe,
                label=tuple(f"{key}={value}" for key, value in wanted.labels.items()),
                limit=most,
                after=after,
            )
            page: list[ConfirmationView] = await self._connection.ask("confirmations.pending", query=query)
            found += page
            if len(page) < most:
                break
            after = page[-1].confirmation
        return found

    async def decide(
        self,
        reference: str,
        decision: Literal["approve", "deny"],
        *,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",  # noqa: ARG002 - the server knows the token that brings the answer
        sign: Path | None = None,
    ) -> ConfirmationView:
        only_oneself(by)
        _unsigned(sign)
        if digest is None:
            found = await self.view(reference)
            reference, digest = found.confirmation, found.digest
        body = DecideBody(digest=digest, reason=reason)
        decided: ConfirmationView = await self._connection.ask(f"confirmations.{decision}", reference, body=body)
        return decided


def _unsigned(key: Path | None) -> None:
    if key is not None:
        remedy = "The server identifies you by your token: omit --sign."
        raise UsageError("answers to a server are not signed", remedy=remedy)
