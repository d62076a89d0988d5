"""The port that runs a program where it can do no harm (rule 9): its terms, how it ends, and what refuses it.

The sandbox implements it. Who starts a server or a function apart from this process needs this alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec

PLACES: Final = ("/usr/local/bin", "/usr/bin")
"""Where programs are looked for; `/bin` is a link to the last on every system of today."""
Status = Literal["SUCCEEDED", "FAILED", "TIMEOUT"]
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


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program, and the terms on which it is run."""

    name: str = ""
    """Names the home that it keeps from run to run, such as `mcp_files`; empty: it has an empty one, deleted after."""
    command: tuple[str, ...]
    cwd: Path
    """The folder in which it starts, if it can see it; else it starts in its home."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    terms: SandboxTerms = SandboxTerms()
    reads: tuple[Path, ...] = ()
    """More that it can read."""
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


class SandboxUnavailableError(Exception):
    """Nothing here isolates as well as is demanded."""

    def __init__(self, message: str, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(message)


class CommandMissingError(Exception):
    """An allowed command is not installed where a sandbox could see it."""


class LooserError(ValueError):
    """Someone tried to loosen a limit."""

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        super().__init__(f"{field}: {why}")


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

    async def close(self) -> None:
        pass


def _none() -> SandboxUnavailableError:
    return SandboxUnavailableError("this Remit is without its sandbox", "Install it with that part.")
