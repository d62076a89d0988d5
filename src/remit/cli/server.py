"""Serves the API, pages and MCP over HTTP, with a worker on jobs and TOOL tickets beside them, all in one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from remit.cli import exit_codes
from remit.cli.running import Stop, run_async
from remit.errors import JournalError, SettingsError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import State
    from remit.cli.listening import Listening
    from remit.http.guard import Guard
    from remit.http.router import Mount, Part

_log: Final = logging.getLogger("remit.engine")
AGAIN_S: Final = 5.0
"""Seconds until a worker that the journal failed tries again."""
REQUESTS: Final = 64
"""Requests of one principal under way at once."""


def serve(state: State, listening: Listening, *, work: bool) -> int:
    """Serve until told to stop; the exit status."""
    return run_async(lambda stop: _serve(state, listening, stop, work=work), gentle=True)


async def _serve(state: State, listening: Listening, stop: Stop, *, work: bool) -> int:
    _needs_uvicorn()
    from remit.cli.door import Door

    # A client names the folders, so searches stay within the roots.
    async with state.remit(creates=True, flags={"fs.search_anywhere": False, **listening.flags}) as remit:
        door = Door(state, listening, remit.settings, remit.clock)
        stop.hurry = remit.engine.stop
        mounts = _mounts(state, remit, door.guard)
        async with _working(remit, stop, work=work):
            await door.serve(mounts, "", stop.requested)
            if work:
                await remit.engine.drain(remit.settings.jobs.drain_seconds)
    return exit_codes.OK


def _mounts(state: State, remit: Remit, guard: Guard) -> list[Mount]:
    """The API at its paths, pages at all others, and MCP at its path if it is installed."""
    from remit.api.limits import Places
    from remit.api.part import Api
    from remit.api.routes import ROUTES
    from remit.http.router import Mount

    counts, places = remit.settings.tickets.expose_warn_count, Places(REQUESTS)
    api = Api(remit.service, ROUTES, places, counts_warnings=counts)
    mounts = [Mount(path, api, None) for path in api.paths]
    if find_spec("jinja2") is None:
        state.note("without pages: jinja2 is not installed")
        mounts.append(Mount("/", api, None))
    else:
        from remit.pages.entry import Entry
        from remit.pages.part import Pages
        from remit.pages.table import PAGES

        clock = remit.clock
        entry = Entry(guard, clock)
        mounts.append(Mount("/", Pages(remit.service, PAGES, entry, places, clock), None, entry.admit))
    if find_spec("mcp") is None:
        state.note("without MCP: mcp is not installed")
    else:
        from remit.http.deferred import Deferred
        from remit.mcp_server.place import PATH
        from remit.settings.principal import principal

        who = principal(remit.settings)
        mounts.append(Mount(PATH, Deferred(_load_mcp, lambda: _mcp(state, remit, who)), "call"))
    return mounts


def _load_mcp() -> None:
    """Import what serves MCP: the SDK takes longer than all the rest of a server."""
    import remit.mcp_server.endpoint
    import remit.mcp_server.server  # noqa: F401 - both are used by _mcp, at once


@asynccontextmanager
async def _mcp(state: State, remit: Remit, who: str) -> AsyncIterator[Part]:
    """What answers MCP clients; closed at the end of the block."""
    from remit.mcp_server.endpoint import Endpoint
    from remit.mcp_server.names import WireNames
    from remit.mcp_server.server import ToolServer

    confirm = state.command("confirm")
    face = ToolServer(remit.service, WireNames(), principal=who, transport="http", relay=None, confirm=confirm)
    try:
        yield Endpoint(face)
    finally:
        await face.close()


@asynccontextmanager
async def _working(remit: Remit, stop: Stop, *, work: bool) -> AsyncIterator[None]:
    """Within the block, work on jobs and TOOL tickets."""
    if not work:
        yield
        return
    from remit.tickets.runner import RunnerConfig

    engine, tickets = remit.engine, remit.service.tickets
    engine.start()
    runner = tickets.runner(RunnerConfig(owner=engine.owner), tickets.executor())
    running = asyncio.create_task(runner.run(stop.requested, once=False), name="remit:tickets")
    lasting = asyncio.create_task(_lasting(remit), name="remit:engine-again")
    try:
        yield
    finally:
        for task in (running, lasting):
            task.cancel()
        await asyncio.wait([running, lasting])


async def _lasting(remit: Remit) -> None:
    """Begin to work again a while after the journal failed the engine: a server stays up, and so do its jobs."""
    engine = remit.engine
    while True:
        try:
            if engine.failure is None:
                await engine.stopped()
        except JournalError:
            _log.warning("the worker starts again in %g s", AGAIN_S)
        await remit.clock.sleep(AGAIN_S)
        await engine.restart()


def _needs_uvicorn() -> None:
    try:
        import prometheus_client  # noqa: F401 - its metrics are served
        import uvicorn  # noqa: F401 - it serves
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[serve]'") from error
