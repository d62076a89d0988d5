"""A program that is run and recorded: its model calls, what it tried to reach, how it ended, and the files it changed.

The run is one call, `program.run`, and what the program asks models stands below that call's step. The program has the
terminal of this process. It is known by a token of its own; without one model call in the record it was not seen.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import ProviderError, RunError, StateError
from remit.jobs.recipe import recipe
from remit.jobs.run import Run as JobRun
from remit.journal.kinds import INNER, decode
from remit.mcp_config.agent_ground import AgentNeeds, enclosed
from remit.parts.model_gateway.answers import Answers, recording_of
from remit.parts.model_gateway.claims import SpanClaims
from remit.parts.model_gateway.clis import STEADY, Place, Start, start_of
from remit.parts.model_gateway.front import ProgramFront
from remit.parts.model_gateway.kinds import ModelGatewayAsked, ModelGatewayTried
from remit.parts.model_gateway.settings import ModelGatewaySettings
from remit.process.child import bound
from remit.process.enclosure import FolderMount, Program
from remit.process.family import ProcessFamily
from remit.process.terminal import EnclosedProgram
from remit.settings.places import data_folder
from remit.tools.meta import Level
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.parts.model_gateway.runs import TokenRun
    from remit.process.enclosure import Enclosures
    from remit.settings import Settings

PROVIDER: Final = "program"
RUN: Final = f"{PROVIDER}.run"
_LONGEST_MS: Final = 7 * 86_400_000
_KILLED: Final = 128 + signal.SIGKILL
_GRACE_S: Final = 5.0
_MOST_FILES: Final = 20_000
_MOST_BYTES: Final = 64 * 1024 * 1024
"""The largest file whose bytes are compared; of a larger one size and time are."""
_LEFT_OUT: Final = frozenset({".git", ".remit", "node_modules", "__pycache__"})
_PIECE: Final = 65_536
SERVERS: Final = 16
"""MCP servers at once for a program in the sandbox: they take the memory of this machine, and not of the sandbox."""
_SHOWN: Final = 500
"""Files that are named, of those that changed."""


_BRIDGE: Final = """
import os, socket, sys, threading
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
def pass_on():
    while piece := os.read(0, 65536):
        server.sendall(piece)
    server.shutdown(socket.SHUT_WR)
threading.Thread(target=pass_on, daemon=True).start()
while piece := server.recv(65536):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
"""
"""The MCP server of a program in the sandbox: its stdin and stdout lead to a socket."""


class RunArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program and how it is run."""

    command: Annotated[tuple[str, ...], Meta(min_length=1, description="The program and its arguments.")]
    folder: Annotated[str, Meta(description="Where it is started; what it changes there is told.")]
    home: Annotated[str, Meta(description="The home that it has.")] = ""
    budget: Annotated[dict[str, float], Meta(description="tokens, cost (US dollars) and calls that it may use.")] = {}
    steady: Annotated[bool, Meta(description="Whether dates of commits, zone and language are fixed.")] = False
    alone: Annotated[bool, Meta(description="Whether other hosts than the models' are refused to it.")] = True
    governed: Annotated[bool, Meta(description="Whether it has no tools but Remit's.")] = False
    replays: Annotated[str, Meta(description="The job whose answers it is given.")] = ""
    fork_at: Annotated[int, Meta(ge=0, description="The question with tools from which on models are asked.")] = 0
    sandbox: Annotated[AgentNeeds | None, Meta(description="What it has in the sandbox beside its project.")] = None
    otel: Annotated[bool, Meta(description="Whether spans that it tells of itself are kept, as its claims.")] = False
    at: Annotated[str, Meta(description="Where it sees its folder, in the sandbox; empty: where that is.")] = ""

    @property
    def fence(self) -> AgentNeeds | None:
        """Return what it needs in the sandbox; None: it is not run there."""
        return self.sandbox or (AgentNeeds() if self.at else None)


class Changed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that changed."""

    path: str
    before: str = ""
    """Its digest; empty: it was not there."""
    after: str = ""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program."""

    exit_code: int
    """128 and the signal's number where a signal ended it."""
    seen: bool
    """Whether a model call of it came here; without one nothing is known of what it asked."""
    requests: int = 0
    refused: int = 0
    tokens: int = 0
    cost: float = 0.0
    lost: bool = False
    """Whether it ended with the process that recorded it; what else it did is not known."""
    tried: tuple[str, ...] = ()
    """Hosts that it tried to reach besides."""
    changed: tuple[Changed, ...] = ()
    governed: int = 0
    """Calls that a model wanted and a gate saw."""
    ungoverned: tuple[str, ...] = ()
    """Calls that a model wanted and whose result it was told, and that no gate saw."""
    claimed: int = 0
    """Spans that it told of itself and that are kept: its claims."""
    claims_left_out: int = 0


class ProgramProvider(Toolset):
    """Runs programs beside a gateway of this process."""

    def __init__(self, opening: Opening, own: ModelGatewaySettings) -> None:
        tool = declare(
            RUN,
            "Run a program whose model calls are recorded.",
            RunArgs,
            RunResult,
            provider=PROVIDER,
            writes=True,
            idempotent=False,
            capability_level=Level.L2,
            isolation="unprotected",
            timeout_ms=_LONGEST_MS,
        )
        super().__init__(PROVIDER, (tool,))
        self._front = ProgramFront(opening, own)
        self._journal = opening.journal
        self._mcp = partial(tools_of, opening.settings)
        self.terminal = Terminal(opening.enclosures)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Run a program to its end. Raise ProviderError."""
        self._require(name)
        run_args = arguments(RunArgs, args)
        run = self._front.run(ctx, run_args.budget)
        if run_args.replays:
            run.answers = Answers(await recording_of(self._journal, run_args.replays), fork_at=run_args.fork_at)
        folder, tried, claims = (
            run_args.folder,
            TriedHosts(run, ctx.step),
            SpanClaims(run.ledger.record, ctx.step, ctx.log),
        )
        run.claims = claims if run_args.otel else None
        async with AsyncExitStack() as stack:
            front = await stack.enter_async_context(self._front.before(run))
            proxy = await stack.enter_async_context(tried.refusing()) if run_args.alone and not run_args.fence else ""
            before = await asyncio.to_thread(look, Path(folder))
            tools = self._mcp(run=ctx.stream) if run_args.governed else ()
            place = Place(front.url, front.token, proxy, folder_of_run(run_args.at or folder), tools, run_args.otel)
            fence = Fence(run_args.fence, tried.refused, run_args.at) if run_args.fence is not None else None
            status = await self.terminal.run(run_args.command, folder, place, steady=run_args.steady, fence=fence)
            await run.idle()
            await tried.recorded()
            after = await asyncio.to_thread(look, Path(folder))
        result = RunResult(
            exit_code=status,
            seen=run.requests > 0,
            requests=run.requests,
            refused=run.refused,
            tokens=run.spent.tokens,
            cost=run.spent.cost,
            tried=tuple(tried.hosts),
            changed=changes(before, after),
            governed=run.governed,
            ungoverned=tuple(run.ungoverned),
            claimed=claims.count,
            claims_left_out=claims.left_out,
        )
        return ToolResult(msgspec.to_builtins(result))

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:  # noqa: ARG002 - the port's
        """Say that a program whose recorder died ended with it, and what it had asked."""
        events = await self._journal.read(ctx.stream)
        payloads = [decode(event.kind, event.data) for event in events if event.kind == ModelGatewayAsked.KIND]
        count = sum(getattr(payload, "step", "").startswith(f"{ctx.step}{INNER}") for payload in payloads)
        lost = RunResult(exit_code=_KILLED, seen=count > 0, requests=count, lost=True)
        return ToolResult(msgspec.to_builtins(lost))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:  # noqa: ARG002 - the port's
        """Show what would be run."""
        run_args = arguments(RunArgs, args)
        return Preview(what=f"Runs {' '.join(run_args.command)} in {run_args.folder}, with your rights.")


def tools_of(settings: Settings, *, run: str = "", replays: str = "") -> tuple[str, ...]:
    """Return the command by which an agent starts Remit's MCP server on the journal of this process.

    `run` is the stream of its questions to models, which say what it was told; `replays` that of the job whose recorded
    outcomes its calls get.
    """
    streams = {"REMIT_MCP_RUN": run, "REMIT_MCP_REPLAYS": replays}
    known = ("env", *(f"{name}={stream}" for name, stream in streams.items() if stream)) if run or replays else ()
    file = ("--config", str(settings.file)) if settings.file is not None else ()
    return (*known, sys.executable, "-m", "remit", *file, "--journal", settings.journal.url, "mcp", "serve")


async def _ended(child: asyncio.subprocess.Process) -> None:
    """End a program that still runs."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            child.send_signal(how)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await child.wait()


class Fence(NamedTuple):
    """The sandbox of a program."""

    needs: AgentNeeds
    refused: Callable[[str, str], None]
    """Hears of each `host:port` that it may not reach, and why."""
    at: str = ""
    """Where it sees its folder; empty: where that is."""


class Terminal:
    """Programs at the terminal of this process."""

    def __init__(self, enclosures: Callable[[], Enclosures]) -> None:
        self._enclosures = enclosures
        self._stops: set[Callable[[], None]] = set()

    async def run(
        self, command: tuple[str, ...], folder: str, place: Place, *, steady: bool, fence: Fence | None = None
    ) -> int:
        """Run a program in a folder, to its end and that of all that it started; the exit status.

        Raise ProviderError if it cannot be started: with a fence it is never started without the sandbox.
        """
        env = {**os.environ, **(STEADY if steady else {})}
        try:
            if fence is None:
                return await self._child(start_of(command, env, place), folder)
            async with tools_within(place.tools, folder) as (tools, reads):
                place = place._replace(tools=tools)
                needs = msgspec.structs.replace(fence.needs, reads=(*fence.needs.reads, *reads))
                return await self._enclosed(start_of(command, env, place), folder, place, fence._replace(needs=needs))
        except OSError as error:
            raise ProviderError(f"{command[0]}: {error.strerror or error}", cause=Code.env_unavailable) from error

    def stop(self) -> None:
        """Ask every program to end."""
        for stop in [*self._stops]:
            stop()

    async def _child(self, start: Start, folder: str) -> int:
        family = ProcessFamily()
        env = {**start.env, **family.env}
        words = bound(start.command, cwd=folder, env=env)
        child = await asyncio.create_subprocess_exec(*words, cwd=folder, env=env)

        def stop() -> None:
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)

        self._stops.add(stop)
        try:
            status = await child.wait()
        finally:
            self._stops.discard(stop)
            await _ended(child)
            await asyncio.to_thread(family.end)
        return status if status >= 0 else 128 - status

    async def _enclosed(self, start: Start, folder: str, place: Place, fence: Fence) -> int:
        program = await asyncio.to_thread(_fenced, start, folder, place, fence)
        child = EnclosedProgram(program, self._enclosures())
        self._stops.add(child.stop)
        try:
            return await child.run()
        except StateError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", code=error.code) from error
        finally:
            self._stops.discard(child.stop)


@asynccontextmanager
async def tools_within(server: tuple[str, ...], folder: str) -> AsyncIterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Start an MCP server out here, where the journal is, for each connection that a program in the sandbox makes.

    Of more than `SERVERS` at once the rest is closed. Give the command that is the server there, and what that reads.
    """
    if not server:
        yield (), ()
        return
    children, room = set[asyncio.subprocess.Process](), asyncio.Semaphore(SERVERS)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if room.locked():
            writer.close()
            return
        pipe = asyncio.subprocess.PIPE
        async with room:
            child = await asyncio.create_subprocess_exec(*server, stdin=pipe, stdout=pipe, cwd=folder)
            children.add(child)
            if child.stdin is not None and child.stdout is not None:
                await asyncio.gather(_passed_on(reader, child.stdin), _passed_on(child.stdout, writer))
            await child.wait()
            children.discard(child)

    python = await asyncio.to_thread(os.path.realpath, sys.executable)
    with TemporaryDirectory(prefix="remit-tools-") as place:
        listener = await asyncio.start_unix_server(serve, path := f"{place}/socket")
        try:
            yield (python, "-I", "-S", "-c", _BRIDGE, path), (place, sys.base_prefix)
        finally:
            listener.close()
            await asyncio.gather(*map(_ended, children))


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # one of them has left
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


def _fenced(start: Start, folder: str, place: Place, fence: Fence) -> Program:
    """Return a program as it is in the sandbox: it reads the files that its words name."""
    named = tuple(word for word in start.command[1:] if os.path.isabs(word) and os.path.isfile(word))  # noqa: PTH113, PTH117 - a prompt is no path
    needs = msgspec.structs.replace(fence.needs, reads=(*fence.needs.reads, *named))
    program = enclosed(start.command, start.env, Path(folder), needs, fence.refused, at=fence.at)
    if not any(place.files.iterdir()):
        return program
    # A fresh copy: what a program writes there within steers none outside.
    copy = place.files.with_suffix(".enclosed")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place.files, copy, symlinks=True)
    mounts = (*program.mounts, FolderMount(copy, str(place.files), writable=True))
    return msgspec.structs.replace(program, mounts=mounts)


@recipe("recorded_program", version="1")
async def recorded_program(
    run: JobRun,
    command: list[str],
    folder: str,
    home: str,
    budget: dict[str, float],
    steady: bool = False,
    alone: bool = True,
    governed: bool = False,
    replays: str = "",
    fork_at: int = 0,
    sandbox: dict[str, Any] | None = None,
    at: str = "",
    otel: bool = False,
) -> dict[str, Any]:
    """Run a program whose model calls are recorded, and return how it ended."""
    inputs: dict[str, Any] = {"command": command, "folder": folder, "home": home}
    inputs |= {"budget": budget, "steady": steady, "alone": alone, "governed": governed}
    newer = {name: value for name, value in (("sandbox", sandbox), ("at", at), ("otel", otel)) if value}
    outcome = await run.attempt(RUN, {**inputs, "replays": replays, "fork_at": fork_at, **newer}, key="run")
    if not outcome.ok:
        raise RunError(outcome.reason, code=outcome.code or Code.STEP_FAILED, remedy=outcome.remedy)
    result: dict[str, Any] = outcome.value
    if result["lost"]:
        raise RunError("the program ended with the process that recorded it", code=Code.OUTCOME_UNKNOWN)
    return result


def folder_of_run(folder: str) -> Path:
    """Return a folder for files of ours, the same for every program that works there: its path stands in prompts."""
    place = data_folder(os.environ) / "runs" / sha256(os.fsencode(folder)).hexdigest()[:16]
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


# --- files


def look(folder: Path) -> dict[str, str]:
    """Return the digest of each file below a folder, by its path; of large files their size and time."""
    return dict(_digests(folder))


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Changed, ...]:
    """Return the files that are not what they were."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    differences = [Changed(path=path, before=before.get(path, ""), after=after.get(path, "")) for path in paths]
    return tuple(differences[:_SHOWN])


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    count = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in sorted(files):
            count += 1
            if count > _MOST_FILES:
                return
            path = Path(parent, name)
            with suppress(OSError):  # gone, or not ours to read
                yield str(path.relative_to(folder)), _digest(path)


def _digest(path: Path) -> str:
    state = path.lstat()
    if not stat.S_ISREG(state.st_mode) or state.st_size > _MOST_BYTES:
        return f"{state.st_mode}:{state.st_size}:{state.st_mtime_ns}"
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


# --- what a program tries to reach besides


class TriedHosts:
    """The hosts that a program tried to reach and was refused, each recorded once."""

    def __init__(self, run: TokenRun, step: str) -> None:
        self.hosts = dict[str, None]()
        self._run, self._step = run, step
        self._tasks = list[asyncio.Task[None]]()

    def refused(self, host: str, _reason: str = "") -> None:
        """Record a host."""
        if host not in self.hosts:
            self.hosts[host] = None
            recording = self._run.ledger.record(ModelGatewayTried(step=self._step, host=host))
            self._tasks.append(asyncio.ensure_future(recording))

    async def recorded(self) -> None:
        """Wait until each is recorded. Raise JournalError."""
        await asyncio.gather(*self._tasks)

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[str]:
        """Listen as a proxy that refuses every host; its URL."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split(" ", 2)
            self.refused(head[1][:200] if len(head) > 1 else "")
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()
