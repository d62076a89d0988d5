"""The port that runs a program where it can do no harm (rule 9): its terms, how it ends, and what refuses it.

The sandbox implements it. Who starts a server or a function apart from this process needs this alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec

PYTHONS: Final = ("/usr/bin/python3", "/usr/local/bin/python3")
"""Pythons that any user can run."""
PLACES: Final = ("/usr/local/bin", "/usr/bin")
"""Where programs are looked for; `/bin` is a link to the last on every system of today."""
WORKSPACE: Final = "/workspace"
INPUTS: Final = "/inputs"
PROXY_PORT: Final = 3128
"""Where a program that may reach hosts finds the filtering proxy, on its own loopback."""
MB: Final = 1024 * 1024
Status = Literal["SUCCEEDED", "FAILED", "TIMEOUT"]
Rules = Literal["program", "browser"]
"""Whose rules a run's filter of system calls is made of: any program's, or those with what a browser needs."""
Listener = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Hears output as it comes; what it raises is not the program's."""


class SandboxTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The terms of a program of the operator's own that runs in the sandbox; `true` stands for none of these."""

    roots: tuple[str, ...] = ()
    """Folders and files of this machine that it can read, under their own paths."""
    writable: tuple[str, ...] = ()
    """Folders that it can also change."""
    network: tuple[str, ...] = ()
    """Hosts that it may reach by HTTP, as `host`, `host:port` or `*.domain`; empty: no network at all."""
    limits: dict[str, int] = {}
    """Limits by their names in `[sandbox]`, stricter than there."""


class FolderMount(msgspec.Struct, frozen=True):
    """A folder or file of this machine, and where the program sees it."""

    source: Path
    target: str
    writable: bool = False


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program, and the terms on which it is run."""

    name: str = ""
    """Names the home that it keeps from run to run, such as `mcp_files`; empty: it has an empty one, deleted after."""
    command: tuple[str, ...]
    before: tuple[str, ...] = ()
    """A program of the system, by its whole path, and its words: it starts the command, which follows them."""
    cwd: Path
    """The folder in which it starts, if it can see it; else it starts in its home."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    terms: SandboxTerms = SandboxTerms()
    reads: tuple[Path, ...] = ()
    """More that it can read."""
    mounts: tuple[FolderMount, ...] = ()
    """Folders and files that it sees, at whatever paths; they win over those of its terms."""
    private: tuple[str, ...] = ()
    """Of the hosts of its terms those whose addresses need not be public: the operator named them."""
    refused: Callable[[str, str], None] | None = None
    """Hears of each `host:port` that it may not reach, and why."""


class Stream(msgspec.Struct, frozen=True):
    """What a program wrote to stdout or stderr."""

    data: bytes = b""
    """The first of it, up to the limit."""
    total: int = 0
    """Bytes in all."""

    @property
    def truncated(self) -> bool:
        """Return whether there was more."""
        return self.total > len(self.data)


class ProgramEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program. Every process of it is gone."""

    status: Status
    exit_code: int | None = None
    signal: str = ""
    """The signal that ended the program, such as SIGSEGV."""
    limit: str = ""
    """The limit that was hit, by its name in Limits."""
    stdout: Stream = Stream()
    stderr: Stream = Stream()


class RunLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one run; every one is enforced, and its mechanism is in the receipt."""

    wall_ms: int = 60_000
    """From the start to the end."""
    cpu_ms: int = 60_000
    """Processor time of all processes together."""
    cpu_percent: int = 100
    """Share of processors at any time; 100 is one whole processor."""
    memory_bytes: int = 1024 * MB
    pids: int = 256
    """Processes and threads at the same time."""
    descriptors: int = 1024
    """Open files of one process."""
    file_bytes: int = 256 * MB
    """The largest file."""
    tmp_bytes: int = 64 * MB
    """`/tmp`."""
    workspace_bytes: int = 512 * MB
    """All files of the workspace together."""
    workspace_files: int = 10_000
    """Its files and folders."""
    stdout_bytes: int = 1_000_000
    stderr_bytes: int = 1_000_000
    artifact_bytes: int = 50 * MB
    """All collected files together."""
    artifact_files: int = 100


class RunUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run used, and how that is known."""

    wall_ms: int = 0
    cpu_ms: int | None = None
    memory_bytes: int | None = None
    """The most at any time."""
    mechanism: str = ""


class ConnectionAttempt(msgspec.Struct, kw_only=True):
    """One attempt to reach a host."""

    host: str
    port: int
    allowed: bool = True
    reason: str = msgspec.field(name="why", default="")
    """Why it was refused or failed; `why` in records and in results of `sandbox.exec`."""
    sent: int = 0
    received: int = 0


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """How a run was isolated, as it is recorded."""

    driver: str
    version: str
    isolation: str
    filter_hash: str = ""
    """Of the seccomp program; empty if the driver brings its own."""
    limits: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The mechanism behind each limit."""
    network: list[str] = []
    connections: list[ConnectionAttempt] = []
    """Connections that it tried to make through the proxy, up to 200."""
    usage: RunUsage = RunUsage()


class ProgramRun(ProgramEnd, frozen=True, kw_only=True):
    """How a run ended, and how it was isolated."""

    receipt: Receipt


def quiet(_stream: Literal["stdout", "stderr"], _data: bytes) -> None:
    """A listener that hears nothing."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, on what, within which limits."""

    id: str
    """Names the run; another may not bear it at the same time."""
    argv: tuple[str, ...]
    """The program by its absolute path within the sandbox, and its arguments."""
    workspace: Path
    """The folder that is `/workspace`, the only one that keeps what is written to it."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    cwd: str = WORKSPACE
    """Where the program starts."""
    stdin: bytes = b""
    feed: int | None = None
    """Descriptor that it reads instead of `stdin`, for a program that lasts: its output then goes to the listener
    alone, all of it. The caller closes it.
    """
    mounts: tuple[FolderMount, ...] = ()
    limits: RunLimits = RunLimits()
    network: tuple[str, ...] = ()
    """Hosts that the filtering proxy lets through; empty: no network."""
    private: tuple[str, ...] = ()
    """Of them those, as `host:port`, whose addresses need not be public: the operator named them."""
    listener: Callable[[ConnectionAttempt], None] | None = None
    """Hears of each attempt to reach a host, once it is known how it went."""
    inherited: tuple[int, ...] = ()
    """Open descriptors that the program gets as well, under their numbers. The caller closes them."""
    rules: Rules = "program"
    """The calls that it may ask of the kernel: a browser makes a sandbox of its own within ours, for each page."""


class SandboxUnavailableError(Exception):
    """Nothing here isolates as well as is demanded."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(message)


class CommandMissingError(Exception):
    """An allowed command is not installed where a sandbox could see it."""


class LooserError(ValueError):
    """Someone tried to loosen a limit."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(f"{field}: {reason}")


class RunScratch(Protocol):
    """A folder for one run, which goes with this process if that is killed."""

    @property
    def work(self) -> Path:
        """The folder that the user as whom programs run here owns."""
        ...

    def beside(self, name: str) -> Path:
        """An empty folder beside `work`, which that user can read."""
        ...

    def size(self) -> int:
        """Return the bytes of `work` on the disk."""
        ...

    def close(self) -> None:
        """Delete it, with whatever a program left in it."""
        ...


class Enclosures(Protocol):
    """Runs programs of the operator's own, each on its own terms.

    Its methods raise SandboxUnavailableError, CommandMissingError, LooserError or OSError if a program cannot be run on
    its terms; the program has then not begun.
    """

    def sees(self, path: Path) -> bool:
        """Return whether the user as whom programs run here may read a path."""
        ...

    def admit(self, folder: Path) -> None:
        """Close a folder of ours to all others, but have the user as whom programs run here pass it. Raise OSError."""
        ...

    def own(self, folder: Path) -> None:
        """Give a folder, and all that is in it, to the user as whom programs run here. Raise OSError."""
        ...

    async def run(self, program: Program, listener: Listener, *, stdin: bytes = b"") -> ProgramEnd:
        """Run a program to its end."""
        ...

    async def start(self, program: Program, protocol: asyncio.SubprocessProtocol) -> asyncio.SubprocessTransport:
        """Start a program that lasts, whose stdin, output and end the protocol is told of."""
        ...

    async def require(self) -> None:
        """Raise SandboxUnavailableError if nothing here isolates as the operator demands."""
        ...

    def scratch(self) -> RunScratch:
        """Make a folder for one run. Raise OSError."""
        ...

    async def execute(self, spec: Spec, listener: Listener) -> ProgramRun:
        """Run what a caller has decided to the last mount; cancelling it kills the program."""
        ...

    async def kill(self, run: str) -> None:
        """End a run by its id; one that has ended is left alone."""
        ...

    async def close(self) -> None:
        """End every run."""
        ...


class NoEnclosures:
    """Runs nothing: this Remit has no sandbox, and nothing runs without one that should run in it."""

    def sees(self, path: Path) -> bool:  # noqa: ARG002 - the port's
        return True

    def admit(self, folder: Path) -> None:
        folder.chmod(0o700)

    def own(self, folder: Path) -> None:
        pass

    async def run(self, program: Program, listener: Listener, *, stdin: bytes = b"") -> ProgramEnd:  # noqa: ARG002 - the port's
        raise _none()

    async def start(self, program: Program, protocol: asyncio.SubprocessProtocol) -> asyncio.SubprocessTransport:  # noqa: ARG002 - the port's
        raise _none()

    async def require(self) -> None:
        raise _none()

    def scratch(self) -> RunScratch:
        raise _none()

    async def execute(self, spec: Spec, listener: Listener) -> ProgramRun:  # noqa: ARG002 - the port's
        raise _none()

    async def kill(self, run: str) -> None:
        pass

    async def close(self) -> None:
        pass


def python() -> str:
    """Return the first of PYTHONS that is there; empty: none is."""
    return next((path for path in PYTHONS if Path(path).exists()), "")


def _none() -> SandboxUnavailableError:
    return SandboxUnavailableError("this Remit is without its sandbox", "Install it with that part.")
