"""One run, as a driver is given it: everything is decided, nothing is looked up any more.

The outcome of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from remit.process.enclosure import ProgramEnd
from remit.sandbox.limits import Limits
from remit.sandbox.seccomp.filter import Rules


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run used, and how that is known."""

    wall_ms: int = 0
    cpu_ms: int | None = None
    memory_bytes: int | None = None
    """The most at any time."""
    mechanism: str = ""


class Connection(msgspec.Struct, kw_only=True):
    """One attempt to reach a host."""

    host: str
    port: int
    allowed: bool = True
    why: str = ""
    """Why it was refused or failed."""
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
    connections: list[Connection] = []
    """Connections that it tried to make through the proxy, up to 200."""
    usage: Usage = Usage()


class Execution(ProgramEnd, frozen=True, kw_only=True):
    """How a run ended, and how it was isolated."""

    receipt: Receipt


def quiet(_stream: Literal["stdout", "stderr"], _data: bytes) -> None:
    """A listener that hears nothing."""


WORKSPACE: Final = "/workspace"
INPUTS: Final = "/inputs"


class Mount(msgspec.Struct, frozen=True):
    """A folder or file of this machine, and where the program sees it."""

    source: Path
    target: str
    writable: bool = False


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
    mounts: tuple[Mount, ...] = ()
    limits: Limits = Limits()
    network: tuple[str, ...] = ()
    """Hosts that the filtering proxy lets through; empty: no network."""
    private: tuple[str, ...] = ()
    """Of them those, as `host:port`, whose addresses need not be public: the operator named them."""
    heard: Callable[[Connection], None] | None = None
    """Hears of each attempt to reach a host, once it is known how it went."""
    inherited: tuple[int, ...] = ()
    """Open descriptors that the program gets as well, under their numbers. The caller closes them."""
    rules: Rules = "program"
    """The calls that it may ask of the kernel: a browser makes a sandbox of its own within ours, for each page."""
