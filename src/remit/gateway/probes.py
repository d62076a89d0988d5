"""Probes of the providers that tools depend on: from what they know, without asking anything of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from remit.codes import Code
from remit.gateway.readiness import DependencyState, Probe
from remit.redact import line
from remit.tools.remote import Probed

MCP: Final = "mcp"
"""The dependency that stands for all MCP servers."""
JOBS: Final = "worker.jobs"
"""The work of this process on jobs, as readiness shows it."""
READY: Final = DependencyState(ready=True)
_UNKNOWN: Final = DependencyState(ready=False, code=Code.DEP_UNKNOWN.name, detail="not reached yet")
_CODES: Final[Mapping[Code, Code]] = {Code.SpawnFailed: Code.DEP_INIT_FAILED, Code.Timeout: Code.DEP_TIMEOUT}
"""The code for each provider's cause; any other is DEP_UNAVAILABLE."""


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
        return _state(provider)

    return look


def _all_of(providers: Sequence[Probed]) -> Probe:
    async def look() -> DependencyState:
        states = {each.dependency: _state(each) for each in providers}
        down = [key for key, state in states.items() if not state.ready]
        if not down:
            return READY
        known = [key for key in down if states[key].code != Code.DEP_UNKNOWN.name]
        code = states[(known or down)[0]].code
        return DependencyState(ready=False, code=code, detail=f"not ready: {', '.join(down)}")

    return look


def _state(provider: Probed) -> DependencyState:
    outage = provider.outage()
    if outage is None:
        return READY if provider.reached else _UNKNOWN
    code = _CODES.get(outage.cause, Code.DEP_UNAVAILABLE)
    return DependencyState(ready=False, code=code.name, detail=line(outage.why))
