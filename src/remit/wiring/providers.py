"""The sources of tools of a process, and what makes them ready."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from remit.blocking import Threads
from remit.clock import Clock
from remit.gateway.probes import probes_of, unavailable
from remit.gateway.readiness import Probe
from remit.providers.folder import FolderSearchProvider
from remit.providers.fs import FsProvider
from remit.providers.functions import FunctionProvider
from remit.providers.mcp_absent import AbsentProvider
from remit.providers.sandbox import SandboxProvider
from remit.providers.stub import StubProvider
from remit.randomness import RandomSource
from remit.sandbox.enclosure import Enclosures
from remit.sandbox.opening import open_sandbox
from remit.settings import Settings
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import configured_servers
from remit.settings.places import data_folder
from remit.tools.function import FunctionTool
from remit.tools.meta import ToolMeta
from remit.tools.pins import Pins
from remit.tools.provider import ToolProvider
from remit.tools.remote import Authorizer

_log: Final = logging.getLogger("remit.settings")
_ALWAYS: Final = frozenset({"builtin", "folder", "jobs", "sandbox"})
"""Providers of every process."""


def standard_providers(
    settings: Settings, tools: Iterable[FunctionTool[..., Any]], enclosures: Enclosures
) -> list[ToolProvider]:
    """The providers that every process has, and the user's own functions."""
    roots = [Path(root) for root in settings.fs.roots]
    threads, private = Threads(settings.jobs.concurrency), _private(settings)
    return [
        FsProvider(roots, settings.fs.max_read_bytes, decisive=_decisive(settings), private=private, threads=threads),
        FolderSearchProvider(
            _cache_folder(settings),
            roots=roots,
            anywhere=settings.fs.search_anywhere,
            base=settings.folder,
            private=private,
            threads=threads,
        ),
        FunctionProvider(tools, threads=threads, enclosures=enclosures),
        SandboxProvider(open_sandbox(settings)),
    ]


def _decisive(settings: Settings) -> list[Path]:
    """What decides about agents: settings, modules, the journal, what is trusted.

    Modules of the folder may also be dotted names.
    """
    files = [Path(name) for name in settings.app.modules if name.endswith(".py")]
    packages = [settings.folder.joinpath(*name.split(".")) for name in settings.app.modules if not name.endswith(".py")]
    dotted = [path if path.is_dir() else path.with_suffix(".py") for path in packages]
    named = [settings.file] if settings.file is not None else []
    named += [Path(settings.confirm.allowed_signers)] if settings.confirm.allowed_signers else []
    if settings.journal.file is not None:
        named += [Path(settings.journal.url + end) for end in ("", "-journal", "-shm", "-wal")]
    return [*named, *files, *dotted, *_private(settings), data_folder(os.environ)]


def _private(settings: Settings) -> list[Path]:
    """Keys, logins and what is trusted: no tool reads them."""
    kept = data_folder(os.environ)
    named = [settings.journal.key_file, settings.serve.tls_key]
    return [*(kept / name for name in ("journal-keys", "mcp-auth", "trust")), *(Path(name) for name in named if name)]


def servers_of(settings: Settings) -> tuple[McpServer, ...]:
    """The MCP servers that are not disabled, also if `tools.no_mcp` is set."""
    found = configured_servers(settings, os.environ)
    for warning in found.warnings:
        _log.warning("%s", warning)
    return found.enabled


def mcp_providers(
    servers: Sequence[McpServer],
    settings: Settings,
    pins: Pins,
    clock: Clock,
    chance: RandomSource,
    authorizer: Authorizer | None,
    enclosures: Enclosures,
) -> list[ToolProvider]:
    """One for each MCP server, or what stands in for all of them.

    The SDK behind them takes half a second to import; a process without servers does not pay for it.
    """
    if settings.tools.no_mcp:
        return [StubProvider(source=partial(_stand_ins, servers, pins, settings.mcp.pins_file))]
    if not servers:
        return []
    try:
        # An extra, and slow to import.
        from remit.providers.mcp.enclosed import launch_of  # noqa: PLC0415 - as above
        from remit.providers.mcp.oauth import Login  # noqa: PLC0415 - as above
        from remit.providers.mcp.provider import McpProvider  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        return [AbsentProvider(server.name, error.name or "mcp") for server in servers]
    login = Login(data_folder(os.environ) / "mcp-auth", authorizer)
    return [
        McpProvider(
            server,
            settings.mcp,
            pins,
            clock=clock,
            chance=chance,
            login=login,
            launch=launch_of(server, enclosures),
        )
        for server in servers
    ]


def stand_ins_of(tools: Iterable[ToolMeta]) -> list[ToolProvider]:
    """Providers that list these tools and run none: for looking at a catalog without starting what offers it.

    Tools that are always there are left out, since they speak for themselves.
    """
    by_provider: dict[str, list[ToolMeta]] = {}
    for tool in tools:
        if tool.provider_id not in _ALWAYS:
            by_provider.setdefault(tool.provider_id, []).append(tool)
    return [
        StubProvider(
            listed,
            {meta.name: () for meta in listed},  # no answers: what they return stays as it is declared
            provider_id=name if name.startswith("mcp_") else f"recorded_{name}",
        )
        for name, listed in by_provider.items()
    ]


async def _stand_ins(servers: Sequence[McpServer], pins: Pins, file: str) -> list[ToolMeta]:
    from remit.providers.mcp.stand_ins import stand_ins  # noqa: PLC0415 - only a process without servers needs it

    return await stand_ins(servers, pins, file)


def probes_for(servers: Sequence[McpServer], settings: Settings, providers: Sequence[ToolProvider]) -> dict[str, Probe]:
    """What tells whether each provider is ready."""
    if settings.tools.no_mcp:
        return unavailable([f"mcp.{server.name}" for server in servers], "turned off by NO_MCP")
    return probes_of(providers)


def _cache_folder(settings: Settings) -> Path:
    """Where indexes live that can be made again: beside the project's journal."""
    return settings.folder / ".remit" / "cache"
