"""A front before the models of a program: a listener on loopback, where the program's token is one run of calls.

`remit record` has one before the program that it runs, and the executors of `remit work` before their agents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from remit.errors import ProviderError
from remit.gateway.budget import Budget
from remit.http.guard import token_of
from remit.parts.model_gateway.runs import InnerLedger, TokenRun
from remit.parts.model_gateway.settings import ModelGatewaySettings
from remit.randomness import salt
from remit.record.client_calls import ClientCalls
from remit.tools.front import FrontAddress

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.tools.front import ServedModel
    from remit.tools.provider import CallContext


class FrontRun(NamedTuple):
    """A run, and what its program is told."""

    run: TokenRun
    url: str
    """The address, without a path."""
    token: str


class ProgramFront:
    """Answers programs of this process (`remit.tools.front.Front`)."""

    def __init__(self, opening: Opening, own: ModelGatewaySettings) -> None:
        self._settings = opening.settings
        self._own = own
        self._journal = opening.journal
        self._decided = opening.door.decided

    def run(self, ctx: CallContext, budget: Mapping[str, float], *, gated: bool = True) -> TokenRun:
        """Return a run whose calls stand below a call. Raise ProviderError."""
        if ctx.inside is None:
            raise ProviderError("nothing can be recorded here", cause=None)
        return TokenRun(
            InnerLedger(ctx.inside, self._decided),
            principal=ctx.principal,
            kind="job" if ctx.job is not None else "session",
            job=ctx.job,
            budget=_budget(budget),
            gates=ClientCalls(self._journal, self._journal.clock.now()) if gated else None,
        )

    @asynccontextmanager
    async def before(self, run: TokenRun) -> AsyncIterator[FrontRun]:
        """Answer a run within the block, and until its last request has ended."""
        from remit.parts.model_gateway.wiring import Listener  # noqa: PLC0415 - the extras "models" and "serve"

        listener, token = Listener(self._settings, self._own, self._journal.clock), token_of(salt(32))
        async with listener.listening() as url:
            listener.runs.open(token, run)
            yield FrontRun(run, url, token)
            await run.idle()

    @asynccontextmanager
    async def open(self, ctx: CallContext, model: ServedModel) -> AsyncIterator[FrontAddress]:
        from remit.parts.model_gateway.wiring import upstream_of  # noqa: PLC0415 - as above

        run = self.run(ctx, model.budget, gated=model.gated)
        family, provider = upstream_of(self._settings, model)
        run.providers = {family.prefix: provider}
        async with self.before(run) as front:
            yield FrontAddress(f"{front.url}{family.prefix}{family.based}", front.token)


def open_front(opening: Opening) -> ProgramFront | None:
    """Return what stands before the models of executors; None where a setting says so."""
    own = opening.part
    return ProgramFront(opening, own) if isinstance(own, ModelGatewaySettings) and own.executors else None


def _budget(limits: Mapping[str, float]) -> Budget:
    tokens, calls = limits.get("tokens"), limits.get("calls")
    return Budget(
        tokens=None if tokens is None else int(tokens),
        cost=limits.get("cost"),
        calls=None if calls is None else int(calls),
    )
