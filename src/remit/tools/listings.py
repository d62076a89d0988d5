"""Which providers have to be listed, and the tasks that do it: one at a time per provider, shared by all who wait.

Every invalidation asks for a listing that begins after it. Who waits is served by the first listing that began after
the last invalidation before he came: never by an older one, and never kept by a provider that changes all the time.
The tasks are ours alone: a waiter that is cancelled takes no listing with it, and none sees a caller's context.

The port to what is known of tools' versions: who gives a tool its version, and what ran under which.

The journal is its default (`remit.record.uses`): it knows what was recorded. A registry of your own, such as one over a
service catalog, is handed in (`Remit(versions=…)`); then a tool whose provider gives it no version has the registry's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import copy_context
from inspect import iscoroutinefunction
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from remit.errors import UsageError

_log: Final = logging.getLogger("remit.tools")

Found = TypeVar("Found")


class _Provider(msgspec.Struct):
    """Listings of one provider, counted."""

    requests: int = 1
    begun: int = 0
    done: int = 0
    task: asyncio.Task[None] | None = None


class Listings(Generic[Found]):
    """Lists what is stale, for who asks."""

    def __init__(
        self,
        ask: Callable[[str], Awaitable[Found]],
        enter: Callable[[str, Found], None],
    ) -> None:
        self._providers: dict[str, _Provider] = {}
        self._ask = ask
        self._enter = enter
        self._context = copy_context()
        self.stale: set[str] = set()
        """Ids of those whose last listing, if any, is out of date; they stay here until a newer one has entered."""

    def add(self, provider_id: str) -> None:
        """List one provider more."""
        self._providers[provider_id] = _Provider()
        self.stale.add(provider_id)

    def remove(self, provider_id: str) -> None:
        """List a provider no more; a listing under way is given up, and no one waits for it."""
        its = self._providers.pop(provider_id)
        self.stale.discard(provider_id)
        if its.task is not None:
            its.task.cancel()

    @property
    def under_way(self) -> frozenset[str]:
        """Ids of those that are being listed."""
        return frozenset(each for each, its in self._providers.items() if its.task is not None and not its.task.done())

    def invalidate(self, provider_ids: Iterable[str]) -> bool:
        """Have providers listed again; whether any of them was not already about to be."""
        due = [each for each in provider_ids if self._providers[each].begun == self._providers[each].requests]
        for each in due:
            self._providers[each].requests += 1
        self.stale.update(due)
        return bool(due)

    async def fresh(self, provider_ids: Iterable[str]) -> None:
        """Wait until what is known of providers is no older than this call; suspends only where it is."""
        goals = {each: self._providers[each].requests for each in provider_ids}
        while tasks := [
            self._task(each)
            for each, goal in goals.items()
            if each in self._providers and self._providers[each].done < goal
        ]:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                if not task.cancelled():
                    task.result()

    async def close(self) -> None:
        """Cancel what is under way, and wait for its end."""
        tasks = [its.task for its in self._providers.values() if its.task is not None and not its.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _task(self, provider_id: str) -> asyncio.Task[None]:
        its = self._providers[provider_id]
        if its.task is None or its.task.done():
            loop = asyncio.get_running_loop()
            its.task = loop.create_task(
                self._list(provider_id), name=f"remit:list:{provider_id}", context=self._context.copy()
            )
            its.task.add_done_callback(_told)
        return its.task

    async def _list(self, provider_id: str) -> None:
        its = self._providers[provider_id]
        mark = its.begun = its.requests
        listing = await self._ask(provider_id)
        if self._providers.get(provider_id) is not its:
            return  # removed meanwhile
        its.done = mark
        if its.requests == mark:
            self.stale.discard(provider_id)
        self._enter(provider_id, listing)


def _told(task: asyncio.Task[None]) -> None:
    """An error outlives its listing even if it is not awaited any more."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s failed", task.get_name(), exc_info=error)


def cancelled() -> bool:
    """Return whether the running task itself was cancelled, rather than something of a provider's own it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ToolVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a tool (contract: versioning, "Registry")."""

    version: str
    request_schema_hash: str = ""
    """Digest of its input schema; empty: not known."""
    response_schema_hash: str = ""
    """Digest of its output schema; empty: it has none, or it is not known."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a tool that calls were made under."""

    tool: str
    provider_id: str
    version: str
    request_schema_hash: str
    response_schema_hash: str
    calls: int
    first_at: int
    """Microseconds since the Unix epoch."""
    last_at: int
    open_jobs: tuple[str, ...] = ()
    """Jobs with such a call that have not ended."""
    users: tuple[str, ...] = ()
    """Jobs, sessions and calls from outside with such a call, in the order of their first one."""


class ToolVersionRegistry(Protocol):
    """Knows the versions of tools."""

    async def get_tool_version(self, tool: str) -> ToolVersion | None:
        """The version of a tool, by its full name; None: it is not known. Raises JournalError."""
        ...

    async def uses(self, tool: str) -> Sequence[ToolUse]:
        """Return every version of a tool that calls were made under, the newest first. Raises JournalError."""
        ...

    async def schema(self, digest: str) -> Any:
        """The schema behind a hash; None: it is not known. Raises JournalError."""
        ...


def require_registry(versions: object) -> None:
    """Raise UsageError unless it is a registry: each of its methods is there, and a coroutine function."""
    names = [name for name in vars(ToolVersionRegistry) if not name.startswith("_")]
    wrong = [name for name in names if not iscoroutinefunction(getattr(versions, name, None))]
    if wrong:
        reason = f"{type(versions).__name__} is no registry of versions: it lacks async def {', '.join(wrong)}"
        raise UsageError(reason, remedy="Give it what remit.tools.listings.ToolVersionRegistry has.")
