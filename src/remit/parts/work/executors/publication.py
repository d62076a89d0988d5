"""The publication of a run: while its program works, and at its end, what it has is pushed and shown as a draft.

Every push and every pull request is a call of the outbox's tools through the gate, as the principal of the run. What
fails, or is not allowed, is said in the result, and stops nothing: the commit stands here all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.errors import ProviderError, RemitError
from remit.parts.work.executors.worktree import Worktree, paths_of
from remit.parts.work.outbox.provider import PullArgs
from remit.parts.work.outbox.remote import SNAPSHOT, GitRemote, branch_of

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.work.order import WorkOrder
    from remit.parts.work.workflow import OutboxTable
    from remit.tools.door import ToolDoor

_log: Final = logging.getLogger("remit.work")
PUSH: Final = "outbox.push"
PULL: Final = "outbox.pull"


class PublishedRun(NamedTuple):
    """The part of a run that others can see."""

    url: str = ""
    """The pull request; empty: there is none."""
    problem: str = ""
    """Why the work was not pushed, or not shown."""


class Publication:
    """One run's branch on the remote, and its pull request."""

    def __init__(
        self,
        door: ToolDoor,
        principal: str,
        order: WorkOrder,
        title: str,
        remote: GitRemote,
        table: OutboxTable,
        clock: Clock,
        *,
        pulls: bool,
    ) -> None:
        self._principal = principal
        self._door = door
        self._order = order
        self._title = title
        self._remote = remote
        self._table = table
        self._pulls = pulls
        self._clock = clock
        self._session = ""
        self._pushed = ""
        """The commit that stands there."""
        self._url = ""

    @asynccontextmanager
    async def early(self, tree: Worktree, base: str, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """Push what is there up to then, every so often, within the block."""
        beats = asyncio.ensure_future(self._beats(tree, base, tell)) if self._table.push_seconds else None
        try:
            yield
        finally:
            if beats is not None:
                beats.cancel()
                await asyncio.gather(beats, return_exceptions=True)

    async def end(self, head: str) -> PublishedRun:
        """Push the commit that the run ends with."""
        try:
            await self._publish(head)
        except (ProviderError, RemitError) as error:
            return PublishedRun(self._url, str(error))
        return PublishedRun(self._url)

    async def _beats(self, tree: Worktree, base: str, tell: Callable[[str], None]) -> None:
        message = f"What {self._order.run_id} has up to now\n\n{SNAPSHOT}: {self._order.run_id}"
        while True:
            await self._clock.sleep(self._table.push_seconds)
            try:
                commit = await tree.snapshot(message)
                forbidden = self._order.constraints.forbidden_paths
                if commit not in {base, self._pushed} and not paths_of(await tree.changed(base, commit), forbidden):
                    await self._publish(commit)
                    tell("pushed what is there up to now")
            except (ProviderError, RemitError, OSError) as error:  # such as for a file that goes as it is read
                _log.warning("%s %s: not pushed: %s", self._order.issue_ref, self._order.run_id, error)

    async def _publish(self, commit: str) -> None:
        self._session = self._session or await self._door.open(self._principal, "work")
        if commit != self._pushed:
            order = self._order
            await self._call(PUSH, {"issue_ref": order.issue_ref, "run_id": order.run_id, "commit": commit})
            self._pushed = commit
        if self._pulls and not self._url:
            args = await self.pull(f"Work on {self._order.issue_ref} by {self._order.run_id} is under way.", draft=True)
            self._url = str((await self._call(PULL, msgspec.to_builtins(args)))["url"])

    async def pull(self, body: str, *, draft: bool) -> PullArgs:
        """Return the call that has the pull request say something. Raise ProviderError for a remote that is away."""
        order = self._order
        target = order.constraints.target_branch or await self._remote.default()
        if not target:
            reason = "the remote has no branch that a pull request could be meant for: push one, or set target_branch"
            raise ProviderError(reason, cause=None)
        return PullArgs(
            issue_ref=order.issue_ref,
            branch=branch_of(self._table, order.issue),
            target=target,
            title=self._title or order.issue_ref,
            body=body,
            draft=draft,
        )

    async def _call(self, tool: str, args: dict[str, object]) -> dict[str, object]:
        passage = await self._door.call(self._session, tool, args)
        if not passage.ok:
            raise ProviderError(f"{tool}: {passage.reason.removeprefix(f'{tool}: ')}", cause=None)
        fields: dict[str, object] = passage.value
        return fields
