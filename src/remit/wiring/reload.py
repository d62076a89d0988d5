"""Other settings for a process that runs: some take effect at once, others need a restart.

At once: the MCP servers that there are, and the rules. All is read and checked before anything is changed, so settings
that are refused change nothing. A server whose table is as it was is not touched. Calls under way of one that was taken
out or changed end first; calls to a changed one wait for its restart.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from msgspec.structs import replace

from remit.errors import NameInvalidError
from remit.tools.names import MCP
from remit.tools.remote import Remote
from remit.wiring.parts import providers_of
from remit.wiring.providers import servers_of
from remit.wiring.services import policy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.tools.provider import ToolProvider
    from remit.wiring.runtime import Runtime
    from remit.wiring.services import ServicesOnUse

SERVERS: Final = ("servers",)
RULES: Final = ("rules", "groups", "pots", "taint", "tests")
AT_ONCE: Final = frozenset({*(f"mcp.{name}" for name in SERVERS), *(f"policy.{name}" for name in RULES)})
"""Settings that take effect while a process runs; every other needs a restart."""


class SettingsDifference(NamedTuple):
    """The difference between the settings that a process runs with and others."""

    added: tuple[str, ...]
    """Names of MCP servers, as in the next two."""
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    rules: bool
    """Whether the rules of the policy differ."""
    waiting: tuple[str, ...]
    """Keys of settings that need a restart."""

    @property
    def words(self) -> str:
        """The part of it that takes effect at once, in words; empty if there is none."""
        servers = {"added": self.added, "changed": self.changed, "removed": self.removed}
        words = [f"MCP servers {how}: {', '.join(names)}" for how, names in servers.items() if names]
        return "; ".join([*words, *(["other rules"] if self.rules else [])])


async def reread(runtime: Runtime, settings: Settings, arrived: Callable[[str], None]) -> SettingsDifference:
    """Run with these settings from now on, as far as that needs no restart, and return the difference.

    `arrived` is told the name of each server that is added, before it is connected.
    Raises SettingsError, PolicyError, NameInvalidError or UsageError, and then has changed nothing.
    """
    servers = () if runtime.settings.tools.no_mcp else servers_of(settings)
    difference = _difference(runtime, settings, servers)
    policy = policy_of(settings) if difference.rules else None
    opened = _opened(runtime, difference, servers)
    if policy is not None:
        cast("ServicesOnUse", runtime.services).govern(policy)
        runtime.catalog.tell()  # callers may see other tools
    runtime.settings = _taken(runtime.settings, settings, whole=not difference.waiting)
    await _exchange(runtime, difference, servers, opened, arrived)
    if "engine" in vars(runtime) and not difference.waiting:
        await runtime.engine.reread(settings.written)
    return difference


def _difference(runtime: Runtime, settings: Settings, servers: tuple[McpServer, ...]) -> SettingsDifference:
    before = runtime.settings
    old = {} if before.tools.no_mcp else {server.name: server for server in runtime.servers}
    new = {server.name: server for server in servers}
    keys = sorted({key for key in {*before.sources, *settings.sources} if _value(before, key) != _value(settings, key)})
    return SettingsDifference(
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
        removed=tuple(name for name in old if name not in new),
        rules=any(key in AT_ONCE and key.startswith("policy.") for key in keys),
        waiting=tuple(key for key in keys if key not in AT_ONCE),
    )


def _value(settings: Settings, key: str) -> Any:
    part = settings.parts.get(key)
    return part.value if part is not None else settings.value(key, None)


def _opened(runtime: Runtime, difference: SettingsDifference, servers: Iterable[McpServer]) -> dict[str, ToolProvider]:
    """The providers of servers that are new or changed, by their ids; nothing is started yet."""
    for name in difference.added:
        if runtime.catalog.provider(f"mcp_{name}") is not None:
            raise NameInvalidError(f"a provider is called mcp_{name} already", remedy=f"Call the server {name} else.")
    wanted = tuple(server for server in servers if server.name in {*difference.added, *difference.changed})
    parts = [part for part in runtime.parts if part.name == MCP and wanted]
    opened = providers_of(parts, runtime.opening()._replace(servers=wanted))
    return {provider.provider_id: provider for provider in opened}


def _taken(before: Settings, settings: Settings, *, whole: bool) -> Settings:
    """The settings that a process runs with from now on."""
    servers = {name: getattr(settings.mcp, name) for name in SERVERS}
    rules = {name: getattr(settings.policy, name) for name in RULES}
    return replace(
        before,
        mcp=replace(before.mcp, **servers),
        policy=replace(before.policy, **rules),
        sources={**before.sources, **{key: settings.sources[key] for key in AT_ONCE}},
        written=settings.written if whole else before.written,
    )


async def _exchange(
    runtime: Runtime,
    difference: SettingsDifference,
    servers: tuple[McpServer, ...],
    opened: Mapping[str, ToolProvider],
    arrived: Callable[[str], None],
) -> None:
    """Have the catalog offer these servers; calls under way to others end first."""
    catalog = runtime.catalog
    gone = [catalog.remove(f"mcp_{name}") for name in difference.removed]
    ends = [provider.retire() if isinstance(provider, Remote) else provider.close() for provider in gone]
    for name in difference.added:
        catalog.add(opened[f"mcp_{name}"])
        arrived(name)
    for name in difference.changed:
        provider: object = catalog.provider(f"mcp_{name}")
        other: object = opened[f"mcp_{name}"]
        if isinstance(provider, Remote) and isinstance(other, Remote):
            ends.append(provider.become(other))
    if difference.added or difference.changed or difference.removed:
        runtime.servers = servers
        runtime.service.servers.configure(servers)
        runtime.services.readiness.exchange(runtime.probes())
        catalog.tell()
    await asyncio.gather(*ends)
