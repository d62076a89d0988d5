"""Probes of the providers that tools depend on: from what they know, without asking anything of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from remit.codes import Code
from remit.gateway.readiness import DependencyState, Probe
from remit.redact import line
from remit.tools.remote import Outage, Probed

MCP: Final = "mcp"
"""The dependency that stands for all MCP servers."""
READY: Final = DependencyState(ready=True)
_CODES: Final[Mapping[Code, Code]] = {Code.SpawnFailed: Code.DEP_INIT_FAILED, Code.Timeout: Code.DEP_TIMEOUT}
"""What becomes of a provider's cause; any other is DEP_UNAVAILABLE."""


def probes_of(providers: Sequence[object]) -> dict[str, Probe]:
    """A probe for each provider that is `Probed`, by its key, and `mcp` for all of them if there is one."""
    probed = [provider for provider in providers if isinstance(provider, Probed)]
    probes = {provider.dependency: _probe(provider) for provider in probed}
    return {MCP: _all_of(probed), **probes} if probed else {}


def unavailable(keys: Sequence[str], why: str) -> dict[str, Probe]:
    """Probes of dependencies that are not used here, and of `mcp`."""
    state = DependencyState(ready=False, code=Code.DEP_UNAVAILABLE.name, detail=why)

    async def never() -> DependencyState:
        return state

    return dict.fromkeys((MCP, *keys), never)


def _probe(provider: Probed) -> Probe:
    async def look() -> DependencyState:
        return _state(provider.outage())

    return look


def _all_of(providers: Sequence[Probed]) -> Probe:
    async def look() -> DependencyState:
        down = [(each.dependency, _state(outage)) for each in providers if (outage := each.outage()) is not None]
        if not down:
            return READY
        return DependencyState(
            ready=False, code=down[0][1].code, detail=f"not ready: {', '.join(key for key, _ in down)}"
        )

    return look


def _state(outage: Outage | None) -> DependencyState:
    if outage is None:
        return READY
    code = _CODES.get(outage.cause, Code.DEP_UNAVAILABLE)
    return DependencyState(ready=False, code=code.name, detail=line(outage.why))
