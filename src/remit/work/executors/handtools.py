"""Tools on the worktree of one run: what a governed agent has beside the files, for running, looking and committing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import ProviderError
from remit.process.live import Live
from remit.tools.meta import Level
from remit.tools.provider import CallContext, Preview, ToolResult
from remit.tools.shapes import arguments
from remit.tools.toolset import Toolset, declare
from remit.work.executors.port import Site
from remit.work.executors.program import run_program
from remit.work.pack import STDERR, STDOUT

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

    async def _exec(self, asked: ExecArgs, ctx: CallContext) -> ExecResult:
        site, pack = self._site, self._site.pack
        self._count += 1
        names = (f"call-{self._count}.{STDOUT}", f"call-{self._count}.{STDERR}")
        if site.enclosures is not None:
            site.enclosures.own(site.folder)  # what the file tools wrote is ours
        live = Live(ctx.progress)
        try:
            ending = await run_program(
                asked.command,
                cwd=site.folder,
                env=site.env,
                timeout_s=float(asked.timeout_seconds),
                logs=(pack.folder / names[0], pack.folder / names[1]),
                clock=site.clock,
                heard=live,
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

    async def _status(self, _asked: NoArgs, _ctx: CallContext) -> StatusResult:
        head, status, diff = await self._site.tree.look()
        long = max(len(status), len(diff)) > _SHOWN
        return StatusResult(head=head, status=status[:_SHOWN], diff=diff[:_SHOWN], truncated=long)

    async def _commit(self, asked: CommitArgs, _ctx: CallContext) -> CommitResult:
        committed = await self._site.tree.commit(asked.message)
        return CommitResult(head=await self._site.tree.head(), committed=committed)


def _text(log: Any) -> str:
    if log is None:
        return ""
    with log:
        return str(log.read(_SHOWN).decode(errors="replace"))
