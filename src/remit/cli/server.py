"""Serves the API, pages and MCP over HTTP, with a worker on jobs and TOOL tickets beside them, all in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from remit.cli import exit_codes
from remit.cli.runner import SignalStop, run_async
from remit.cli.services import beside, keep_engine, keep_part, keep_required, keep_restarts
from remit.cli.settings_watch import keep_settings
from remit.errors import SettingsError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import CommandState
    from remit.cli.listen_options import ListenOptions
    from remit.http.guard import Guard
    from remit.http.router import PartMount, ServerPart


def serve(state: CommandState, listening: ListenOptions, *, work: bool) -> int:
    """Serve until told to stop; the exit status."""
    return run_async(lambda stop: _serve(state, listening, stop, work=work), gentle=True)


async def _serve(state: CommandState, listening: ListenOptions, stop: SignalStop, *, work: bool) -> int:
    _needs_uvicorn()
    from remit.cli.door import ServerDoor

    # A client names the folders, so searches stay within the roots.
    flags = {"fs.search_anywhere": False, **listening.flags}
    async with AsyncExitStack() as stack:
        remit = await stop.unless(stack.enter_async_context(state.remit(creates=True, flags=flags)))
        if remit is None:
            return exit_codes.OK
        door = ServerDoor(state, listening, remit.settings, remit.clock, remit.people)
        remit.service.health.stopping = stop.requested.is_set
        stop.hurry = remit.engine.stop
        mounts = _mounts(state, remit, door.guard)
        if work:
            await stack.enter_async_context(remit.sending())
        keeping = keep_settings(state, remit, flags, hangup=True)
        async with beside(*_parts(remit, stop, work=work), keeping):
            await door.serve(mounts, "", stop.requested)
            await remit.engine.drain(remit.settings.jobs.drain_seconds)
    return exit_codes.OK


def _mounts(state: CommandState, remit: Remit, guard: Guard) -> list[PartMount]:
    """The API at its paths, pages at all others, and MCP at its path if it is installed."""
    from remit.api.part import Api
    from remit.api.table import routes_of
    from remit.http.access import REQUESTS, RequestPlaces
    from remit.http.router import PartMount

    readers = remit.readers()
    counts, places = remit.settings.value("tickets.expose_warn_count", default=False), RequestPlaces(REQUESTS)
    api = Api(remit.service, routes_of(remit.parts), places, counts_warnings=counts, readers=readers)
    mounts = [*remit.mounts(guard), *(PartMount(path, api, None) for path in api.paths)]
    if find_spec("jinja2") is None:
        state.note("without pages: jinja2 is not installed")
        mounts.append(PartMount("/", api, None))
    else:
        from remit.pages.entry import ConsoleEntry
        from remit.pages.part import ConsolePages
        from remit.pages.table import pages_of

        clock = remit.clock
        entry = ConsoleEntry(guard, clock)
        pages = ConsolePages(remit.service, pages_of(remit.parts), entry, places, clock, readers)
        mounts.append(PartMount("/", pages, None, entry.admit))
    if find_spec("mcp") is None:
        state.note("without MCP: mcp is not installed")
    else:
        from remit.http.router import Deferred
        from remit.mcp_server.card import card_mounts, resource_mounts
        from remit.mcp_server.request import PATH
        from remit.settings.principal import principal

        who = principal(remit.settings)
        mounts += card_mounts(remit.settings.serve.public_url, tokens=not guard.open)
        mounts += resource_mounts(guard.issuers)
        mounts.append(PartMount(PATH, Deferred(_load_mcp, lambda: _mcp(state, remit, who)), "call"))
    return mounts


def _load_mcp() -> None:
    """Import what serves MCP: the SDK takes longer than all the rest of a server."""
    import remit.mcp_server.endpoint
    import remit.mcp_server.server  # noqa: F401 - both are used by _mcp, at once


@asynccontextmanager
async def _mcp(state: CommandState, remit: Remit, who: str) -> AsyncIterator[ServerPart]:
    """Give what answers MCP clients; closed at the end of the block."""
    from remit.cli.offer import relays_of
    from remit.mcp_server.endpoint import Endpoint
    from remit.mcp_server.offer import WireNames
    from remit.mcp_server.request import AskingTerms
    from remit.mcp_server.server import ToolServer

    face = ToolServer(
        remit.service,
        WireNames(),
        principal=who,
        transport="http",
        relay=relays_of(remit),
        confirm=state.command("confirm"),
        terms=AskingTerms.read(remit.settings),
    )
    try:
        yield Endpoint(face)
    finally:
        await face.close()


def _parts(remit: Remit, stop: SignalStop, *, work: bool) -> list[Coroutine[Any, Any, None]]:
    """Give what goes on beside serving; without `work`, the engine only runs tickets' runs that a request waits for."""
    works = remit.beside(stop.requested, "serve") if work else []
    remit.engine.start(only=None if work else remit.awaited, role="serve")
    return [keep_engine(remit), keep_required(remit), keep_restarts(remit), *(keep_part(remit, work) for work in works)]


def _needs_uvicorn() -> None:
    try:
        import prometheus_client  # noqa: F401 - its metrics are served
        import uvicorn  # noqa: F401 - it serves
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[serve]'") from error
