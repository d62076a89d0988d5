"""Remembered approvals in the journal: each a small stream that can be revoked (the rules themselves are policy's)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, NotFoundError, PolicyError
from remit.ids import new_id
from remit.journal.event import Head, HeadPatch, HeadQuery
from remit.journal.kinds import ApprovalRemembered, ApprovalRevoked, decode
from remit.policy.remembered import Remembered, parse_remembered

if TYPE_CHECKING:
    from remit.journal.journal import Journal

KIND: Final = "approval"
_TOOL: Final = "tool"
"""Label of the stream's head: the tool's full name."""
_PAGE: Final = 500
_log: Final = logging.getLogger("remit.gateway")


class RememberedApprovals:
    """Keeps, lists and revokes them."""

    def __init__(self, journal: Journal, *, count: bool = True) -> None:
        """Keep them in `journal`; if they do not `count`, none is ever active and none is made."""
        self._journal = journal
        self.count = count

    async def active(self, tool: str | None = None) -> list[Remembered]:
        """Those that hold now, newest first, no matter who made them, in whatever process; for one tool, or all."""
        if not self.count:
            return []
        now = self._journal.clock.now()
        found = [await self._load(head) for head in await self._heads({_TOOL: tool} if tool else {})]
        return [rule for rule in found if rule is not None and now < rule.expires_at]

    async def keep(self, rule: Remembered, confirmation: str, by: str) -> Remembered:
        """Remember an approval; its identifier is made here."""
        rule = msgspec.structs.replace(rule, id=new_id("rule"))
        event = ApprovalRemembered(rule=msgspec.to_builtins(rule), confirmation=confirmation, by=by)
        patch = HeadPatch(state="active", title=rule.tool, labels={_TOOL: rule.tool})
        await self._journal.create(f"{KIND}/{rule.id}", KIND, event, patch=patch)
        return rule

    async def revoke(self, identifier: str, by: str, reason: str = "") -> None:
        """End one. Raises NotFoundError where none of this name is active."""
        stream = f"{KIND}/{identifier}"
        head = await self._journal.head(stream)
        revoked = ApprovalRevoked(by=by, reason=reason)
        patch = HeadPatch(state="revoked", closed=True)
        try:
            if head is not None and not head.closed:
                await self._journal.append(self._journal.writer(stream, KIND, head), revoked, synced=True, patch=patch)
                return
        except AppendConflictError:
            pass  # someone revoked it at the same moment
        msg = f"no remembered approval {identifier!r} is active"
        raise NotFoundError(msg, code=Code.STREAM_NOT_FOUND, remedy="`remit policy rules` lists them.")

    async def _heads(self, labels: dict[str, str]) -> list[Head]:
        heads: list[Head] = []
        while True:
            before = heads[-1].stream if heads else None
            query = HeadQuery(kind=KIND, states=("active",), labels=labels, before=before, limit=_PAGE)
            page = await self._journal.heads(query)
            heads += page
            if len(page) < _PAGE:
                return heads

    async def _load(self, head: Head) -> Remembered | None:
        """The approval; None for one this Remit cannot understand, and which therefore approves nothing."""
        stream = head.stream
        events = await self._journal.read(stream)
        try:
            self._journal.prove(head, [event for event in events if event.seq <= head.seq])
        except ChainBrokenError as error:
            _log.warning("%s is left out: %s", stream, error.message)
            return None
        found: Remembered | None = None
        for event in events:
            payload = decode(event.kind, event.data)
            if isinstance(payload, ApprovalRevoked):
                return None  # whatever the head says (rule 14)
            if isinstance(payload, ApprovalRemembered) and event.seq <= head.seq:
                try:
                    found = parse_remembered(payload.rule)
                except PolicyError as error:
                    _log.warning("%s is left out: %s", stream, error.message)
        return found
