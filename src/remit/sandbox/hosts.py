"""The allow-list of the sandbox's network: `host`, `*.domain` or `*` for any host, each with `:port` or without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

PORTS: Final = (80, 443)
"""The ports that an entry without one allows."""
_ENTRY: Final = re.compile(r"(?:\*|(\*\.)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?))(?::(\d{1,5}))?")


class Host(NamedTuple):
    """One entry."""

    name: str
    """Empty: any host."""
    below: bool
    """Also, and only, what lies below the name."""
    port: int | None

    def allows(self, host: str, port: int) -> bool:
        """Return whether a host and port are meant."""
        if port != self.port and (self.port is not None or port not in PORTS):
            return False
        return not self.name or (host.endswith("." + self.name) if self.below else host == self.name)

    def covers(self, other: Host) -> bool:
        """Return whether whatever another entry means is meant by this one, too."""
        if other.port != self.port and (self.port is not None or other.port not in PORTS):
            return False
        if not self.name or (self.name, self.below) == (other.name, other.below):
            return True
        return self.below and other.name.endswith("." + self.name)


def read(entry: str) -> Host:
    """An entry of the list. Raises ValueError."""
    match = _ENTRY.fullmatch(entry.lower())
    if match is None or ".." in entry:
        raise ValueError(f"{entry!r} does not look like host, host:port, *.domain or *")
    return Host(match[2] or "", bool(match[1]), int(match[3]) if match[3] else None)


def shared(some: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """The entries that both lists let through. Raises ValueError."""
    here, there = {one: read(one) for one in some}, {one: read(one) for one in others}
    both = [one for one, host in here.items() if any(other.covers(host) for other in there.values())]
    both += [one for one, host in there.items() if any(other.covers(host) for other in here.values())]
    return tuple(sorted({*both}))


def allowed(entries: tuple[str, ...], host: str, port: int) -> bool:
    """Return whether the list lets a host and port through; names compare without case and without a final dot."""
    name = host.lower().removesuffix(".")
    return any(read(entry).allows(name, port) for entry in entries)
