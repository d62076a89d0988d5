"""The outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from remit.process.enclosure import ProgramEnd


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
