"""Where a run begins: at what the runs before it left, in the order in which it can be relied on.

the issue's branch on the remote, or what the last run left here → the commit of a result → a patch → the target branch
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.process.git import commit_of, is_within
from remit.work.executors.worktree import Worktree
from remit.work.outbox.remote import Remote, branch_of

if TYPE_CHECKING:
    from remit.work.order import WorkOrder
    from remit.work.store import WorkStore
    from remit.work.workflow import OutboxTable

_log: Final = logging.getLogger("remit.work")


class Beginning(NamedTuple):
    """The work that a run goes on from."""

    commit: str
    """A commit or a branch of the repository."""
    source: str = ""
    """Its name, in words; empty: the target branch."""
    patch: bytes = b""
    """A patch to be applied first: the work of a run whose commits are not here."""


class Beginnings:
    """Finds out where runs begin."""

    def __init__(self, store: WorkStore, repository: Path, table: OutboxTable, tree: Callable[..., Worktree]) -> None:
        self._store = store
        self._repository = repository
        self._table = table
        self._tree = tree
        self._remote = Remote(repository, table) if table.remote else None

    async def of(self, order: WorkOrder) -> Beginning:
        """Return where a run begins. Raise ProviderError if the remote cannot be asked."""
        branch = branch_of(self._table, order.issue)
        target = await self._target(order.constraints.target_branch)
        pushed = await self._remote.fetch(branch) if self._remote is not None else ""
        left, name = await self._left(order)
        pushed, left = [
            "" if one and await is_within(self._repository, one, target) else one for one in (pushed, left)
        ]  # what was merged is in the target, and so is what changed since
        if pushed and (not left or await is_within(self._repository, left, pushed)):
            return Beginning(pushed, f"{branch} of {self._table.remote}")
        if left:
            return Beginning(left, f"what {name} left")
        return await self._result(order, target)

    async def _target(self, name: str) -> str:
        """Return where the work starts from without a run before: as the remote has it, if there is one."""
        fetched = await self._remote.fetch(name) if self._remote is not None and name else ""
        return fetched or name or "HEAD"

    async def _left(self, order: WorkOrder) -> tuple[str, str]:
        """Return the branch of the last run before that left one here, and the run; empty for none."""
        runs = (await self._store.unit(order.issue)).runs
        for run_id in reversed([name for name in runs if name != order.run_id]):
            tree = self._tree(await self._store.order(order.issue, run_id))
            if await tree.exists():
                for what in (await tree.settle(f"What {run_id} left")).cleared:
                    _log.info("%s %s left, and Remit cleared: %s", order.issue_ref, run_id, what)
            if await tree.has(tree.branch):
                return tree.branch, run_id
        return "", ""

    async def _result(self, order: WorkOrder, target: str) -> Beginning:
        """Return the newest result's commit that is here and not in the target, or its patch."""
        for run_id in reversed((await self._store.unit(order.issue)).results):
            result = await self._store.result(order.issue, run_id)
            commit = await commit_of(self._repository, result.changes.commit) if result is not None else ""
            if commit and not await is_within(self._repository, commit, target):
                return Beginning(commit, f"the commit of {run_id}")
            if not commit and (patch := await self._store.patch(order.issue, run_id)):
                base = patch.partition(b"\n")[0].decode().removeprefix("base ")
                start = await commit_of(self._repository, base)
                return Beginning(start or target, f"the patch of {run_id}", patch)
        return Beginning(target)
