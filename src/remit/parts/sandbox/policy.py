"""The policy of a run: default ← settings ← skill ← call, each only stricter than what it stands on (rule 8).

The allow-list of the sandbox's network: `host`, `*.domain` or `*` for any host, each with `:port` or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from remit.parts.sandbox.driver import Isolation
from remit.parts.sandbox.limits import tightened
from remit.process.enclosure import LooserError, RunLimits
from remit.regex import regex

PORTS: Final = (80, 443)
"""The ports that an entry without one allows."""
_ENTRY: Final = regex(r"(?:\*|(\*\.)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?))(?::(\d{1,5}))?")


class Host(msgspec.Struct, frozen=True):
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
    here, there = {name: read(name) for name in some}, {name: read(name) for name in others}
    both = [name for name, host in here.items() if any(other.covers(host) for other in there.values())]
    both += [name for name, host in there.items() if any(other.covers(host) for other in here.values())]
    return tuple(sorted({*both}))


def allowed(entries: tuple[str, ...], host: str, port: int) -> bool:
    """Return whether the list lets a host and port through; names compare without case and without a final dot."""
    name = host.lower().removesuffix(".")
    return any(read(entry).allows(name, port) for entry in entries)


LAYERS: Final = ("min_isolation", "limits", "network", "commands")


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a run."""

    min_isolation: Isolation = Isolation.namespaces
    limits: RunLimits = RunLimits()
    network: tuple[str, ...] = ()
    """Hosts that may be reached, as `host`, `host:port` or `*.domain`; empty: no network at all."""
    commands: frozenset[str] = frozenset({"bash", "node", "python"})


def terms_of(
    policy: SandboxPolicy, command: str, skills: Iterable[Mapping[str, Any]], layers: Iterable[Mapping[str, Any]]
) -> SandboxPolicy:
    """Return the terms of a command's run: what skills leave, then the layers of its call. Raises LooserError."""
    terms = merged(narrowed(policy, skills), *layers)
    if command not in terms.commands:
        allowed = ", ".join(sorted(terms.commands))
        raise LooserError("command", f"{command} may not run (allowed: {allowed}; see `sandbox.commands`)")
    return terms


def merged(policy: SandboxPolicy, *layers: Mapping[str, Any]) -> SandboxPolicy:
    """The policy with layers of a call on it. Raises LooserError that names the looser field."""
    for layer in layers:
        policy = _with(policy, layer)
    return policy


def narrowed(policy: SandboxPolicy, layers: Iterable[Mapping[str, Any]]) -> SandboxPolicy:
    """The policy and what skills leave of it: of each the stricter, since none of them knows the others.

    Raises LooserError that names a field that cannot be understood.
    """
    for layer in layers:
        policy = _with(policy, {name: _least(policy, name, layer[name]) for name in layer if name != "network"})
        if "network" in layer:
            policy = msgspec.structs.replace(policy, network=_hosts(policy.network, layer["network"]))
    return policy


def _least(policy: SandboxPolicy, name: str, value: Any) -> Any:
    """The value of a field that a skill and the policy both allow; one that cannot be understood is left as it is."""
    try:
        match name:
            case "limits":
                own = msgspec.structs.asdict(policy.limits)
                return {limit: min(most, own.get(limit, most)) for limit, most in value.items()}
            case "commands":
                return [command for command in value if command in policy.commands]
            case "min_isolation":
                return max(policy.min_isolation, Isolation[value]).name
            case _:
                return value
    except (AttributeError, KeyError, TypeError):
        return value


def _hosts(allowed: tuple[str, ...], hosts: Any) -> tuple[str, ...]:
    try:
        return shared(allowed, hosts)
    except (AttributeError, TypeError, ValueError) as error:
        raise LooserError("network", f"it must be a list of hosts: {error}") from error


def _with(policy: SandboxPolicy, layer: Mapping[str, Any]) -> SandboxPolicy:
    for name in layer:
        if name not in LAYERS:
            raise LooserError(name, f"there is no such field; known are {', '.join(LAYERS)}")
    changes: dict[str, Any] = {}
    if "min_isolation" in layer:
        changes["min_isolation"] = _isolation(policy.min_isolation, layer["min_isolation"])
    if "limits" in layer:
        if not isinstance(layer["limits"], Mapping):
            raise LooserError("limits", "it must be a table of limits")
        changes["limits"] = tightened(policy.limits, layer["limits"])
    if "network" in layer:
        changes["network"] = tuple(_subset("network", layer["network"], set(policy.network)))
    if "commands" in layer:
        changes["commands"] = frozenset(_subset("commands", layer["commands"], set(policy.commands)))
    return msgspec.structs.replace(policy, **changes)


def _isolation(least: Isolation, name: Any) -> Isolation:
    known = ", ".join(level.name for level in Isolation if level)
    if not isinstance(name, str) or name not in Isolation.__members__ or name == "none":
        raise LooserError("min_isolation", f"it must be one of {known}, not {name!r}")
    level = Isolation[name]
    if level < least:
        raise LooserError("min_isolation", f"{name} is weaker than the required {least.name}")
    return level


def _subset(field: str, values: Any, allowed: set[str]) -> list[str]:
    if not isinstance(values, list | tuple | set | frozenset) or not all(isinstance(item, str) for item in values):
        raise LooserError(field, "it must be a list of texts")
    extra = sorted(set(values) - allowed)
    if extra:
        raise LooserError(
            field, f"{', '.join(extra)} is not allowed (allowed: {', '.join(sorted(allowed)) or 'nothing'})"
        )
    return sorted(set(values))
