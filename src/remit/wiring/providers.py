"""The sources of tools of a process, and what makes them ready."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.service.job_tools import PROVIDER_ID as JOBS
from remit.settings.mcp_servers import configured_servers
from remit.settings.places import data_folder, login_folder
from remit.tools.stub import StubProvider
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remit.gateway.readiness import Probe
    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.tools.meta import ToolMeta
    from remit.tools.provider import ToolProvider

_log: Final = logging.getLogger("remit.settings")


def decisive(settings: Settings) -> tuple[Path, ...]:
    """Return what decides about agents: settings, modules, the journal, what is trusted.

    Modules of the folder may also be dotted names.
    """
    files = [Path(name) for name in settings.app.modules if name.endswith(".py")]
    packages = [settings.folder.joinpath(*name.split(".")) for name in settings.app.modules if not name.endswith(".py")]
    dotted = [path if path.is_dir() else path.with_suffix(".py") for path in packages]
    named = [settings.file] if settings.file is not None else []
    named += [Path(settings.confirm.allowed_signers)] if settings.confirm.allowed_signers else []
    if settings.journal.file is not None:
        named += [Path(settings.journal.url + end) for end in ("", "-journal", "-shm", "-wal")]
    return (*named, *files, *dotted, *private(settings), data_folder(os.environ))


def private(settings: Settings) -> tuple[Path, ...]:
    """Keys, logins and what is trusted: no tool reads them."""
    path = data_folder(os.environ)
    named = [settings.journal.key_file, settings.serve.tls_key, settings.value("recorder.key", "")]
    return (
        *(path / name for name in ("journal-keys", "recorder-keys", "trust")),
        login_folder(os.environ),
        *(Path(name) for name in named if name),
    )


def servers_of(settings: Settings) -> tuple[McpServer, ...]:
    """The MCP servers that are not disabled, also if `tools.no_mcp` is set."""
    servers = configured_servers(settings, os.environ)
    for warning in servers.warnings:
        _log.warning("%s", warning)
    return servers.enabled


def stand_ins_of(tools: Iterable[ToolMeta]) -> list[ToolProvider]:
    """Providers that list these tools and run none: for looking at a catalog without starting what offers it.

    Tools that are always there are left out, since they speak for themselves.
    """
    always = {JOBS, *(each for part in FIRST_PARTY for each in part.provider_ids)}
    by_provider: dict[str, list[ToolMeta]] = {}
    for tool in tools:
        if tool.provider_id not in always:
            by_provider.setdefault(tool.provider_id, []).append(tool)
    return [
        StubProvider(
            listed,
            {meta.name: () for meta in listed},  # no answers: what they return stays as it is declared
            provider_id=name if name.startswith("mcp_") else f"recorded_{name}",
        )
        for name, listed in by_provider.items()
    ]


def probes_for(servers: Sequence[McpServer], settings: Settings, providers: Sequence[ToolProvider]) -> dict[str, Probe]:
    """Return what tells whether each provider is ready."""
    from remit.gateway.readiness import probes_of, unavailable

    if settings.tools.no_mcp:
        return unavailable([f"mcp.{server.name}" for server in servers], "turned off by NO_MCP")
    return probes_of(providers)
