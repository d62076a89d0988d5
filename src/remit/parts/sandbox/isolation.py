"""The degree to which a driver isolates on this machine, found by running it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec


class Isolation(IntEnum):
    """The degree to which a program is kept from the machine; the settings say `namespaces`, not 2."""

    none = 0
    """Nothing runs."""
    namespaces = 2
    """The same kernel; files, processes, network and users of its own."""
    kernel = 3
    """Another kernel: gVisor, or a machine of its own (Kata)."""


class IsolationCheck(msgspec.Struct, frozen=True):
    """One thing that was tried."""

    name: str
    ok: bool
    detail: str = ""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a probe. It really ran the whole command line; nothing here is a guess."""

    driver: str
    version: str = ""
    level: Isolation = Isolation.none
    limits: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The mechanism behind each limit, such as `memory: cgroup v2`; one that ends in `(soft)` looks every 50 ms."""
    reasons: tuple[str, ...] = ()
    """The reasons why it isolates no better, the failed check first."""
    remedy: str = ""
    checks: tuple[IsolationCheck, ...] = ()

    @property
    def usable(self) -> bool:
        """Return whether anything can run."""
        return self.level > Isolation.none
