"""Which dependencies are ready (contract: tickets, "Gates").

Dependency keys are stable names such as `mcp`, not provider ids, so that a gate can name one before anything is
connected.

Probes of the providers that tools depend on: from what they know, without asking anything of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from remit.clock import Clock, isoformat
from remit.codes import Code
from remit.redact import line
from remit.tools.names import dependency_of
from remit.tools.remote import Probed

PROBE_TIMEOUT_S: Final = 2.0
"""Seconds a probe may take."""


class DependencyState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one dependency can be used."""

    ready: bool
    code: str | None = None
    """`DEP_UNAVAILABLE`, `DEP_INIT_FAILED`, `DEP_TIMEOUT` or `DEP_UNKNOWN` where it is not ready."""
    detail: str = ""


class ReadinessSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every dependency at one moment."""

    degraded: bool
    """Something is not ready, required or optional."""
    required: dict[str, DependencyState]
    optional: dict[str, DependencyState]
    as_of: str

    @property
    def missing_required(self) -> list[str]:
        """Required dependencies that are not ready."""
        return [key for key, state in self.required.items() if not state.ready]

    def refusal(self) -> dict[str, Any]:
        """The body a face answers 503 with."""
        return {
            "error_code": Code.MCP_REQUIRED_UNAVAILABLE.name,
            "missing_required": self.missing_required,
            "degraded": self.degraded,
            "as_of": self.as_of,
        }


Probe = Callable[[], Awaitable[DependencyState]]
Reach = Callable[[Iterable[str]], Awaitable[None]]
"""Connects dependencies, by key, and returns once it is known how they are."""


async def _reach_nothing(_keys: Iterable[str]) -> None:
    """Connect nothing."""


class Readiness:
    """Asks the dependencies how they are.

    Probes, by dependency key, answer fast, from what their owners already know. A dependency whose probe fails, or
    takes longer than `timeout_s`, is not ready; nor is one that is `required` and has no probe. A call that needs one
    that was not reached yet has it connected by `reach` first.
    """

    def __init__(
        self,
        clock: Clock,
        probes: Mapping[str, Probe],
        required: Iterable[str] = (),
        *,
        reach: Reach = _reach_nothing,
        timeout_s: float = PROBE_TIMEOUT_S,
    ) -> None:
        self._clock = clock
        self._own_probes = dict(probes)
        self._added: dict[str, Probe] = {}
        self._required = tuple(dict.fromkeys(required))
        self._reach = reach
        self._timeout_s = timeout_s

    def add(self, key: str, probe: Probe) -> None:
        """Take one more dependency, which is not required."""
        self._added[key] = probe

    def exchange(self, probes: Mapping[str, Probe]) -> None:
        """Take these probes in the place of those it was made with."""
        self._own_probes = dict(probes)

    @property
    def _probes(self) -> Mapping[str, Probe]:
        return self._own_probes | self._added

    @property
    def requires(self) -> bool:
        """Return whether any dependency is required."""
        return bool(self._required)

    async def snapshot(self) -> ReadinessSnapshot:
        """Every dependency now."""
        optional = [key for key in self._probes if key not in self._required]
        required, others = await asyncio.gather(self._states(self._required), self._states(optional))
        ready = all(state.ready for state in (*required.values(), *others.values()))
        return ReadinessSnapshot(
            degraded=not ready, required=required, optional=others, as_of=isoformat(self._clock.now())
        )

    async def reach(self) -> None:
        """Connect the required dependencies that are not ready."""
        missing = [key for key, state in (await self._states(self._required)).items() if not state.ready]
        if missing:
            await self._reach(missing)

    async def missing(self, keys: Iterable[str]) -> dict[str, DependencyState]:
        """Those of the named dependencies that are not ready; one that is not known counts as not ready."""
        states = await self._states(dict.fromkeys(keys))
        unknown = [key for key, state in states.items() if state.code == Code.DEP_UNKNOWN.name and key in self._probes]
        if unknown:
            await self._reach(unknown)
            states |= await self._states(unknown)
        return {key: state for key, state in states.items() if not state.ready}

    async def missing_for(self, name: str) -> dict[str, DependencyState]:
        """Return the needs of a tool that is not known: every required dependency, and the server in its name."""
        servers = [key for key in (dependency_of(name) or "", f"mcp.{name}") if key in self._probes]
        return await self.missing([*self._required, *servers])

    async def _states(self, keys: Iterable[str]) -> dict[str, DependencyState]:
        keys = list(keys)
        return dict(zip(keys, await asyncio.gather(*map(self._state, keys)), strict=True))

    async def _state(self, key: str) -> DependencyState:
        probe = self._probes.get(key)
        if probe is None:
            return DependencyState(ready=False, code=Code.DEP_UNKNOWN.name)
        deadline = asyncio.timeout(self._timeout_s)
        try:
            async with deadline:
                return await probe()
        except Exception as error:  # noqa: BLE001 - a dependency that cannot be asked cannot be used
            if deadline.expired():
                return DependencyState(
                    ready=False, code=Code.DEP_TIMEOUT.name, detail=f"no answer for {self._timeout_s:g} s"
                )
            return DependencyState(ready=False, code=Code.DEP_UNAVAILABLE.name, detail=line(str(error)))


def named(missing: Mapping[str, DependencyState]) -> str:
    """Return what is missing, and why, for people."""
    return ", ".join(f"{key} ({state.detail or state.code})" for key, state in missing.items())


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


def unavailable(keys: Sequence[str], reason: str) -> dict[str, Probe]:
    """Probes of dependencies that are not used here, and of `mcp`."""
    state = DependencyState(ready=False, code=Code.DEP_UNAVAILABLE.name, detail=reason)

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
    return DependencyState(ready=False, code=code.name, detail=line(outage.reason))
