"""One run, as a driver is given it: everything is decided, nothing is looked up any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from remit.sandbox.execution import Connection
from remit.sandbox.limits import Limits
from remit.sandbox.seccomp.filter import Rules

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
