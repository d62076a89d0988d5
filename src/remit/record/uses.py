"""The versions of tools that calls were made under, and who made them: read from the journal (rule 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remit.journal import kinds as k
from remit.record.walk import RootOrigin, Shares, Take, walk
from remit.tools.listings import ToolUse, ToolVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.journal.event import Event
    from remit.journal.journal import Journal

Key = tuple[str, str, str, str]
"""Tool, provider, version and the digest of the input schema."""


class Use:
    """The calls of a tool under one version, while the journal is read."""

    __slots__ = ("calls", "first_at", "key", "last_at", "origins", "responses")

    def __init__(self, key: Key, at: int) -> None:
        self.key = key
        self.calls = 0
        self.first_at = self.last_at = at
        self.origins: dict[str, RootOrigin] = {}
        """The jobs, sessions and calls from outside that made them, by stream."""
        self.responses: dict[str, int] = {}
        """Calls by the digest of the output schema that their results had."""

    def told(self) -> ToolUse:
        """The same, for people and programs."""
        tool, provider, version, request = self.key
        open_jobs = tuple(
            origin.id for origin in self.origins.values() if origin.created is not None and not origin.ended
        )
        return ToolUse(
            tool=tool,
            provider_id=provider,
            version=version,
            request_schema_hash=request,
            response_schema_hash=max(self.responses, key=lambda schema_hash: self.responses[schema_hash], default=""),
            calls=self.calls,
            first_at=self.first_at,
            last_at=self.last_at,
            open_jobs=open_jobs,
            users=tuple(origin.id for origin in self.origins.values()),
        )


class UseCollector:
    """Collects the uses of tools: of one, or of all."""

    def __init__(self, tool: str = "", since: int = 0) -> None:
        self._tool = tool
        self._since = since
        self.by_key: dict[Key, Use] = {}
        self._running: dict[str, Use] = {}
        self._announced: Shares[Key] = Shares()

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """Announcements and their ends, and forks."""
        return {
            k.ToolInvocationStarted: self._start,
            k.ToolInvocationFinished: self._finish,
            k.JobForked: self._fork,
        }

    def _start(self, origin: RootOrigin, event: Event, payload: k.ToolInvocationStarted) -> None:
        if (self._tool and payload.tool_name != self._tool) or event.at < self._since:
            return
        key = self._note(origin, event, payload)
        use = self._use(key, event.at)
        use.last_at = event.at
        use.origins.setdefault(origin.root, origin)
        use.calls += event.seq > origin.taken_until
        self._running[payload.invocation_id] = use

    def _note(self, origin: RootOrigin, event: Event, payload: k.ToolInvocationStarted) -> Key:
        """Remember that a call stands there, which a fork may share."""
        key = payload.tool_name, payload.provider_id, payload.tool_version, payload.request_schema_hash
        self._announced.note(origin, event, key)
        return key

    def _fork(self, origin: RootOrigin, event: Event, payload: k.JobForked) -> None:
        """Count a fork among the users of what the events that it shares were recorded under."""
        for key, times in self._announced.of(origin, payload):
            if self._tool in {"", key[0]}:
                self._share(origin, event, key, len(times))

    def _share(self, origin: RootOrigin, event: Event, key: Key, _count: int) -> None:
        self._use(key, event.at).origins.setdefault(origin.root, origin)

    def _use(self, key: Key, at: int) -> Use:
        use = self.by_key.get(key)
        if use is None:
            use = self.by_key[key] = Use(key, at)
        return use

    def _finish(self, _origin: RootOrigin, _event: Event, payload: k.ToolInvocationFinished) -> None:
        use = self._running.pop(payload.invocation_id, None)
        if use is not None and payload.response_schema_hash:
            use.responses[payload.response_schema_hash] = use.responses.get(payload.response_schema_hash, 0) + 1


class JournalVersions:
    """The registry of versions that the journal is (`remit.tools.listings.ToolVersionRegistry`)."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def get_tool_version(self, tool: str) -> ToolVersion | None:
        uses = await self.uses(tool)
        if not uses:
            return None
        newest = uses[0]
        return ToolVersion(
            version=newest.version,
            request_schema_hash=newest.request_schema_hash,
            response_schema_hash=newest.response_schema_hash,
        )

    async def uses(self, tool: str) -> Sequence[ToolUse]:
        collector = UseCollector(tool)
        await walk(self._journal, [collector])
        return sorted((use.told() for use in collector.by_key.values()), key=lambda use: -use.last_at)

    async def schema(self, digest: str) -> Any:
        return await self._journal.schema(digest)
