"""The policy of a run: default ← settings ← skill ← call, each only stricter than what it stands on (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.process.enclosure import LooserError
from remit.sandbox.isolation import Isolation
from remit.sandbox.limits import Limits, tightened

LAYERS: Final = ("min_isolation", "limits", "network", "commands")


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a run."""

    min_isolation: Isolation = Isolation.namespaces
    limits: Limits = Limits()
    network: tuple[str, ...] = ()
    """Hosts that may be reached, as `host`, `host:port` or `*.domain`; empty: no network at all."""
    commands: frozenset[str] = frozenset({"bash", "node", "python"})


def merged(policy: SandboxPolicy, *layers: Mapping[str, Any]) -> SandboxPolicy:
    """The policy with layers on it, a skill's before a call's. Raises LooserError that names the looser field."""
    for layer in layers:
        policy = _with(policy, layer)
    return policy


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


def _isolation(least: Isolation, asked: Any) -> Isolation:
    known = ", ".join(level.name for level in Isolation if level)
    if not isinstance(asked, str) or asked not in Isolation.__members__ or asked == "none":
        raise LooserError("min_isolation", f"it must be one of {known}, not {asked!r}")
    level = Isolation[asked]
    if level < least:
        raise LooserError("min_isolation", f"{asked} is weaker than the required {least.name}")
    return level


def _subset(field: str, asked: Any, allowed: set[str]) -> list[str]:
    if not isinstance(asked, list | tuple | set | frozenset) or not all(isinstance(one, str) for one in asked):
        raise LooserError(field, "it must be a list of texts")
    extra = sorted(set(asked) - allowed)
    if extra:
        raise LooserError(
            field, f"{', '.join(extra)} is not allowed (allowed: {', '.join(sorted(allowed)) or 'nothing'})"
        )
    return sorted(set(asked))
