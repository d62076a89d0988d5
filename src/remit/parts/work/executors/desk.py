"""Governed mode: Remit's own MCP server as an agent's only one, so that all of its calls pass the gate.

    agent ─ stdin, stdout ─ bridge.py ─ Unix socket in the run's home ─ MCP server ─ gate ─ files, worktree

The server is in this process, on the run's own catalog: the files of its worktree, and the tools on it. The calls are
made as the run's principal, by the project's policy with one rule more: what the approval of the run allows is used in
its worktree without a question. A rule that denies or asks is stronger than that one.

Tools on the worktree of one run: what a governed agent has beside the files, for running, looking and committing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError
from remit.mcp_server.server import ToolServer
from remit.mcp_server.stdio import LineWire, OneClient
from remit.parts.work.executors.port import GRANT, RunTools, Site
from remit.parts.work.executors.program import run_program
from remit.parts.work.pack import STDERR, STDOUT
from remit.process.enclosure import PLACES
from remit.process.live import LiveLines
from remit.service.sessions import Sessions
from remit.tasks import Tasks
from remit.tools.meta import Level
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.runtime import Additions, Runtime

if TYPE_CHECKING:
    from remit.capability import Capability
    from remit.journal.journal import Journal
    from remit.record.outcome import OutcomeView
    from remit.service.visible import OfferedTool
    from remit.settings import Settings


PROVIDER: Final = "worktree"
EXEC: Final = f"{PROVIDER}.exec"
STATUS: Final = f"{PROVIDER}.status"
COMMIT: Final = f"{PROVIDER}.commit"
_SHOWN: Final = 100_000
"""Bytes of an output, and of a diff, that a model is given; of an output the archive has the rest."""
_LONGEST_S: Final = 3_600


class ExecArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program to run in the worktree."""

    command: Annotated[
        tuple[Annotated[str, Meta(max_length=100_000)], ...],
        Meta(min_length=1, max_length=1_000, description='Such as ["make", "test"]; no shell reads it.'),
    ]
    timeout_seconds: Annotated[int, Meta(ge=1, le=_LONGEST_S)] = 600


class ExecResult(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program, and what it wrote."""

    exit_code: int | None
    timed_out: bool
    stdout: str
    stderr: str
    truncated: bool
    """Whether an output was longer; the context pack has all of it."""


class NoArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing."""


class StatusResult(msgspec.Struct, frozen=True, kw_only=True):
    """The worktree beside its last commit."""

    head: str
    status: str
    diff: str
    truncated: bool


class CommitArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit of all that differs."""

    message: Annotated[str, Meta(min_length=1, max_length=10_000)]


class CommitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that stands there now."""

    head: str
    committed: bool
    """False: nothing differed."""


Act = Callable[[Any, CallContext], Awaitable[msgspec.Struct]]


class WorktreeTools(Toolset):
    """worktree.exec, worktree.status and worktree.commit, on one run's worktree."""

    def __init__(self, site: Site) -> None:
        reads = partial(declare, provider=PROVIDER, timeout_ms=(_LONGEST_S + 60) * 1_000, isolation="unprotected")
        writes = partial(reads, writes=True, idempotent=False)
        isolation = "sandbox" if site.launch is not None else "unprotected"
        runs = partial(writes, capability_level=Level.L2, isolation=isolation)
        tools = (
            runs(EXEC, "Run a program in the worktree.", ExecArgs, ExecResult),
            reads(STATUS, "Show what differs from the last commit.", NoArgs, StatusResult),
            writes(COMMIT, "Commit all that differs.", CommitArgs, CommitResult),
        )
        super().__init__(PROVIDER, tools)
        self._site = site
        self._count = 0
        self._acts: dict[str, tuple[type[msgspec.Struct], Act]] = {
            EXEC: (ExecArgs, self._exec),
            STATUS: (NoArgs, self._status),
            COMMIT: (CommitArgs, self._commit),
        }

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool. Raise ProviderError."""
        self._require(name)
        takes, act = self._acts[name]
        return ToolResult(msgspec.to_builtins(await act(arguments(takes, args), ctx)))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Show what would run, or be committed. Raise ProviderError."""
        if name == EXEC:
            return Preview(what=f"Runs {' '.join(arguments(ExecArgs, args).command)} in {self._site.folder}.")
        if name == COMMIT:
            diff = (await self._site.tree.look()).diff
            return Preview(what=f"Commits what differs in {self._site.folder}.", diff=diff)
        return None

    async def _exec(self, args: ExecArgs, ctx: CallContext) -> ExecResult:
        site, pack = self._site, self._site.pack
        self._count += 1
        names = (f"call-{self._count}.{STDOUT}", f"call-{self._count}.{STDERR}")
        if site.enclosures is not None:
            site.enclosures.own(site.folder)  # what the file tools wrote is ours
        live = LiveLines(ctx.progress)
        try:
            ending = await run_program(
                args.command,
                cwd=site.folder,
                env=site.env,
                timeout_s=float(args.timeout_seconds),
                logs=(pack.folder / names[0], pack.folder / names[1]),
                clock=site.clock,
                listener=live,
                launch=site.launch,
            )
        finally:
            live.end()
        if ending.error:
            raise ProviderError(ending.error, cause=Code.InvalidInput)
        texts = [_text(pack.open_log(name)) for name in names]
        return ExecResult(
            exit_code=ending.exit_code,
            timed_out=ending.timed_out,
            stdout=texts[0],
            stderr=texts[1],
            truncated=max(ending.stdout_bytes, ending.stderr_bytes) > _SHOWN,
        )

    async def _status(self, _args: NoArgs, _ctx: CallContext) -> StatusResult:
        head, status, diff = await self._site.tree.look()
        long = max(len(status), len(diff)) > _SHOWN
        return StatusResult(head=head, status=status[:_SHOWN], diff=diff[:_SHOWN], truncated=long)

    async def _commit(self, args: CommitArgs, _ctx: CallContext) -> CommitResult:
        committed = await self._site.tree.commit(args.message)
        return CommitResult(head=await self._site.tree.head(), committed=committed)


def _text(log: Any) -> str:
    if log is None:
        return ""
    with log:
        return str(log.read(_SHOWN).decode(errors="replace"))


_FILES: Final = "fs"
"""The part that brings the file tools."""
_OFFERED: Final = frozenset({"builtin", PROVIDER})
_RULE: Final = {"id": GRANT, "effect": "allow", "tools": ["fs.*", f"{PROVIDER}.*"]}
"""Follows from the approval of the run, which says so."""
_SOCKET: Final = "tools.sock"
_BRIDGE: Final = "bridge.py"


class ToolDesk:
    """Offers tools to the governed runs of one project."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self._settings = settings
        self._journal = journal

    @asynccontextmanager
    async def open(self, site: Site) -> AsyncIterator[RunTools]:
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

    async def open(self, *args: Any, **options: Any) -> str:
        self.opened = await super().open(*args, **options)
        return self.opened

    async def call(self, *args: Any, **options: Any) -> OutcomeView:
        outcome = await super().call(*args, **options)
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
    """The tools of a run, as the agent is told of them (`remit.parts.work.executors.port.RunTools`)."""

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
    """Shows the run's own tools (`remit.mcp_server.offer.Names`)."""

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
    spec = find_spec("remit.parts.work.executors.bridge")
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
    python = next((str(path) for place in PLACES if (path := Path(place, "python3")).exists()), "")
    if not python:
        reason = "no python3 in /usr, which governed mode needs in the sandbox: install one"
        raise ProviderError(reason, cause=Code.env_unavailable)
    return python
