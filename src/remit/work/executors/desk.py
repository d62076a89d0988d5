"""Governed mode: Remit's own MCP server as an agent's only one, so that all of its calls pass the gate.

    agent ─ stdin, stdout ─ bridge.py ─ Unix socket in the run's home ─ MCP server ─ gate ─ files, worktree

The server is in this process, on the run's own catalog: the files of its worktree, and the tools on it. The calls are
made as the run's principal, by the project's policy with one rule more: what the approval of the run allows is used in
its worktree without a question. A rule that denies or asks is stronger than that one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError
from remit.mcp_server.server import ToolServer
from remit.mcp_server.stdio import LineWire, OneClient
from remit.process.enclosure import PLACES
from remit.service.sessions import Sessions
from remit.tasks import Tasks
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.runtime import Additions, Runtime
from remit.work.executors.handtools import PROVIDER, WorktreeTools
from remit.work.executors.port import GRANT, Site, Tools

if TYPE_CHECKING:
    from remit.capability import Capability
    from remit.journal.journal import Journal
    from remit.record.outcome import OutcomeView
    from remit.service.visible import OfferedTool
    from remit.settings import Settings

_FILES: Final = "fs"
"""The part that brings the file tools."""
_OFFERED: Final = frozenset({"builtin", PROVIDER})
_RULE: Final = {"id": GRANT, "effect": "allow", "tools": ["fs.*", f"{PROVIDER}.*"]}
"""Follows from the approval of the run, which says so."""
_SOCKET: Final = "tools.sock"
_BRIDGE: Final = "bridge.py"


class Desk:
    """Offers tools to the governed runs of one project."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self._settings = settings
        self._journal = journal

    @asynccontextmanager
    async def open(self, site: Site) -> AsyncIterator[Tools]:
        """Offer the tools of a run within the block. Raise ProviderError."""
        runtime = _RunRuntime(
            _settings_of(self._settings, site), self._journal, Additions(providers=(WorktreeTools(site),))
        )
        sessions = _RunSessions(runtime.gateway, site.principal)
        service: Any = runtime.service
        service.sessions = sessions
        via = f"{site.order.issue_ref} {site.order.run_id}"
        face = ToolServer(service, _Offered(), principal=site.principal, transport=via)
        serving, wires = Tasks(), list[LineWire]()
        try:

            def connected() -> LineWire:
                wire = LineWire()
                wires.append(wire)
                serving.begin(OneClient(face, wire.dispatcher).run())
                return wire

            server = await asyncio.get_running_loop().create_unix_server(connected, sock=_listening(site))
            try:
                yield _RunTools(site, sessions)
            finally:
                server.close()
                serving.cancel()
                await serving.ended()
                for wire in wires:
                    wire.close()
        finally:
            await face.close()
            await runtime.catalog.close()


class _RunRuntime(Runtime):
    """The parts of a run: files alone, beside what is added. Its journal is the project's, which stays open."""

    @cached_property
    def parts(self) -> tuple[Capability, ...]:
        return tuple(part for part in FIRST_PARTY if part.name == _FILES)


class _RunSessions(Sessions):
    """The sessions of a run's agent; counts what is called there."""

    opened = ""
    calls = 0
    denied = 0

    async def open(self, *args: Any, **given: Any) -> str:
        self.opened = await super().open(*args, **given)
        return self.opened

    async def call(self, *args: Any, **given: Any) -> OutcomeView:
        outcome = await super().call(*args, **given)
        self.calls += 1
        self.denied += outcome.code in _DENIALS
        return outcome


_DENIALS: Final = frozenset(
    code.name
    for code in (
        Code.POLICY_DENIED,
        Code.UNTRUSTED_ARGUMENT,
        Code.CONFIRMATION_REQUIRED,
        Code.CONFIRMATION_DENIED,
        Code.CONFIRMATION_EXPIRED,
        Code.CONFIRMATION_MISMATCH,
    )
)


class _RunTools:
    """The tools of a run, as the agent is told of them (`remit.work.executors.port.Tools`)."""

    def __init__(self, site: Site, sessions: _RunSessions) -> None:
        self.command = (_python(site), "-I", "-S", str(site.home / _BRIDGE), str(site.home / _SOCKET))
        self._sessions = sessions

    @property
    def session(self) -> str:
        return self._sessions.opened

    @property
    def calls(self) -> int:
        return self._sessions.calls

    @property
    def denied(self) -> int:
        return self._sessions.denied


class _Offered:
    """Shows the run's own tools (`remit.mcp_server.names.Names`)."""

    def shown(self, tool: OfferedTool) -> str | None:
        return tool.wire_name or None if tool.provider_id in _OFFERED else None

    def full(self, name: str) -> str:
        return f"{PROVIDER}.{name}"  # none of another provider


def _settings_of(settings: Settings, site: Site) -> Settings:
    return replace(
        settings,
        app=replace(settings.app, modules=(), capabilities=(), principal=site.principal),
        fs=replace(settings.fs, roots=(str(site.folder),)),
        mcp=replace(settings.mcp, expose=()),
        policy=replace(settings.policy, rules=(*settings.policy.rules, _RULE)),
    )


def _listening(site: Site) -> socket.socket:
    """Return a socket in the home of the run, with the bridge beside it."""
    spec = find_spec("remit.work.executors.bridge")
    shutil.copyfile(Path(spec.origin if spec is not None and spec.origin else ""), site.home / _BRIDGE)
    place = site.home / _SOCKET
    place.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    folder = os.open(site.home, os.O_PATH | os.O_DIRECTORY)
    try:
        short = Path(f"/proc/self/fd/{folder}")  # a socket's own name is at most some 100 bytes long
        listening.bind(str((short if short.exists() else site.home) / _SOCKET))
    except BaseException:
        listening.close()
        raise
    finally:
        os.close(folder)
    place.chmod(0o600)
    return listening


def _python(site: Site) -> str:
    """Return a Python that a program of the run can start. Raise ProviderError."""
    if site.enclosures is None:
        return sys.executable
    found = next((str(path) for place in PLACES if (path := Path(place, "python3")).exists()), "")
    if not found:
        why = "no python3 in /usr, which governed mode needs in the sandbox: install one"
        raise ProviderError(why, cause=Code.env_unavailable)
    return found
