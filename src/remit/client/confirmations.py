"""Questions to people behind a server, and the approvals that it remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from remit.api.routes.confirmations import MOST, DecideBody, EditBody, PendingQuery, RememberBody, RevokeBody
from remit.client.person import only_oneself
from remit.client.twin import Twin
from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.proof import ProofKind
from remit.policy.remembered import Remembered, Scope
from remit.service.approvals import Approvals
from remit.service.confirmations import Confirmations, QuestionFilter
from remit.service.views import ConfirmationView
from remit.tools.provider import Preview


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
        """Open questions, oldest first, those after `after`."""
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

    async def view(self, reference: str) -> ConfirmationView:
        """One question."""
        view: ConfirmationView = await self._connection.ask("confirmations.view", reference)
        return view

    async def preview(self, reference: str) -> Preview | None:
        """What the call would change, where the server's tools are."""
        found: Preview | None = await self._connection.ask("confirmations.preview", reference)
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
        """Approve or deny a call; without `digest`, the newest question is looked at and taken as seen."""
        only_oneself(by)
        _unsigned(sign)
        if digest is None:
            found = await self.view(reference)
            reference, digest = found.confirmation, found.digest
        body = DecideBody(digest=digest, reason=reason)
        decided: ConfirmationView = await self._connection.ask(f"confirmations.{decision}", reference, body=body)
        return decided

    async def revoke(self, reference: str, *, by: str = "", reason: str = "") -> ConfirmationView:
        """Take back an approval that no call has used."""
        only_oneself(by)
        body = RevokeBody(reason=reason)
        revoked: ConfirmationView = await self._connection.ask("confirmations.revoke", reference, body=body)
        return revoked

    async def edit(self, reference: str, args: Any, *, by: str = "", reason: str = "") -> ConfirmationView:
        """Replace an open question by one with other arguments, still to be approved."""
        only_oneself(by)
        if not isinstance(args, dict):
            raise UsageError("arguments are a JSON object", code=Code.INVALID_TOOL_ARGS)
        body = EditBody(args=args, reason=reason)
        edited: ConfirmationView = await self._connection.ask("confirmations.edit", reference, body=body)
        return edited


class RemoteApprovals(Twin, Approvals):
    """The remembered approvals of a server."""

    async def active(self) -> list[Remembered]:
        """Those that hold now."""
        found: list[Remembered] = await self._connection.ask("approvals.active")
        return found

    async def remember(
        self,
        confirmation: str,
        scope: Scope,
        *,
        seconds: int,
        exact: bool,
        digest: str | None = None,
        by: str = "",
        reason: str = "",
        proof: ProofKind = "",  # noqa: ARG002 - the server knows the token that brings the answer
        sign: Path | None = None,
    ) -> Remembered | None:
        """Let an approval hold for later calls too; with `digest`, approve the question in the same act."""
        only_oneself(by)
        _unsigned(sign)
        body = RememberBody(scope=scope, seconds=seconds, exact=exact, digest=digest, reason=reason)
        kept: Remembered | None = await self._connection.ask("confirmations.remember", confirmation, body=body)
        return kept

    async def revoke(self, rule: str, *, by: str = "", reason: str = "") -> None:
        """End a remembered approval."""
        only_oneself(by)
        await self._connection.ask("approvals.revoke", rule, body=RevokeBody(reason=reason))


def _unsigned(key: Path | None) -> None:
    if key is not None:
        remedy = "The server identifies you by your token: omit --sign."
        raise UsageError("answers to a server are not signed", remedy=remedy)
