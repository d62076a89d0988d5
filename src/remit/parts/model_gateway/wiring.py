"""The model gateway of a process: in `remit serve` for clients with tokens, and beside a program that is recorded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from remit.http.access import ANYBODY, Access
from remit.http.guard import LOOPBACK, Guard
from remit.http.problem import unauthenticated
from remit.http.router import PartMount, Router
from remit.models.registry import KEYS
from remit.parts.model_gateway.claims import PATH, ClaimsPart, SpanClaims
from remit.parts.model_gateway.part import ModelGateway, paths
from remit.parts.model_gateway.runs import Runs, SessionLedger, TokenRun
from remit.parts.model_gateway.settings import NAME, ModelGatewaySettings
from remit.parts.model_gateway.wires import ANTHROPIC, FAMILIES, GEMINI, OPENAI, Family, Provider
from remit.record.client_calls import ClientCalls
from remit.service.door import SessionDoor
from remit.settings.parts import settings_of
from remit.settings.principal import principal

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.clock import Clock
    from remit.settings import Settings
    from remit.tools.front import ServedModel

_MOST: Final = 10_000
"""Clients whose runs are remembered."""


def providers_of(settings: Settings, environ: Mapping[str, str]) -> dict[str, Provider]:
    """Return where the requests of each family go, and with which key."""
    models = settings.models
    urls = {OPENAI: models.openai_url, ANTHROPIC: models.anthropic_url, GEMINI: models.google_url}
    return {
        family.prefix: Provider(
            url.rstrip("/"), next((environ[name] for name in KEYS[family.provider] if environ.get(name)), "")
        )
        for family, url in urls.items()
    }


def upstream_of(settings: Settings, model: ServedModel) -> tuple[Family, Provider]:
    """Return the family of a program's model, and where its requests go."""
    family = next(family for family in FAMILIES if family.provider == model.wire)
    url = model.url or providers_of(settings, {})[family.prefix].url
    return family, Provider(url.rstrip("/"), model.key)


def open_mounts(remit: Remit, guard: Guard) -> list[PartMount]:
    """Return what `remit serve` answers at the paths of the wires; nothing where a setting says so."""
    own = settings_of(remit.settings, NAME, ModelGatewaySettings)
    if not own.serve:
        return []
    part = gateway_of(_Clients(remit, guard).admit, remit.settings, own, remit.clock)
    return [PartMount(path, part, None, _anybody) for path in paths()]


async def _anybody(_headers: Mapping[str, str]) -> Access:
    return ANYBODY


def gateway_of(admit: Any, settings: Settings, own: ModelGatewaySettings, clock: Clock) -> ModelGateway:
    """Return the part of a server."""
    patience = float(settings.models.patience_seconds)
    return ModelGateway(admit, providers_of(settings, os.environ), own, clock, patience_s=patience)


class _Clients:
    """The clients of a server: each principal's calls are a run, in a session."""

    def __init__(self, remit: Remit, guard: Guard) -> None:
        self._remit = remit
        self._guard = guard
        self._door = SessionDoor(remit.runtime.journal, lambda: remit.service)
        self._runs: dict[str, TokenRun] = {}

    async def admit(self, token: str, headers: Mapping[str, str]) -> TokenRun:
        """Return the run of the principal whose token this is. Raise Problem."""
        access: Access = await self._guard.admitted({**headers, "authorization": f"Bearer {token}"})
        access.require("call")
        who = access.principal or principal(self._remit.settings)
        run = self._runs.get(who)
        if run is None:
            ledger = SessionLedger(self._remit.service, self._door.decided, who)
            journal = self._remit.runtime.journal
            gates = ClientCalls(journal, journal.clock.now())
            run = self._runs[who] = TokenRun(ledger, principal=who, gates=gates)
            if len(self._runs) > _MOST:
                del self._runs[next(iter(self._runs))]
        return run


class Listener:
    """A server on loopback for the programs of this process, each with a token of its own; started with the first."""

    def __init__(self, settings: Settings, own: ModelGatewaySettings, clock: Clock) -> None:
        self.runs = Runs()
        self._settings = settings
        self._own = own
        self._clock = clock

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Serve within the block; the URL, without a path."""
        from remit.http.server import listen, serve  # noqa: PLC0415 - loads uvicorn

        part = gateway_of(self._admit, self._settings, self._own, self._clock)
        mounts = [PartMount(path, part, None) for path in paths()]
        mounts.append(PartMount(PATH, ClaimsPart(self._claims), None))
        router = Router(Guard(LOOPBACK, (), self._clock), mounts)
        stop, taken = asyncio.Event(), listen("127.0.0.1", 0)
        serving = asyncio.create_task(serve(router, taken, stop), name="remit:model-gateway")
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        finally:
            stop.set()
            await serving
            taken.close()

    def _claims(self, token: str) -> SpanClaims | None:
        run = self.runs.find(token)
        return run.claims if run is not None else None

    async def _admit(self, token: str, _headers: Mapping[str, str]) -> TokenRun:
        run = self.runs.find(token)
        if run is None:
            raise unauthenticated("The request has no token of a run.")
        return run
