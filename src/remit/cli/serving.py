"""Opening a Remit for MCP clients that connect, and serving it to them over stdio or HTTP."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from remit.cli import exit_codes
from remit.cli.lasting import beside, keep_required
from remit.cli.wrapping import recorded
from remit.errors import RemitError, SettingsError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import State
    from remit.cli.listening import Listening
    from remit.cli.running import Stop
    from remit.mcp_server.names import Names
    from remit.mcp_server.server import ToolServer


class Offer(NamedTuple):
    """The offer that is served."""

    names: Names
    flags: dict[str, Any]
    """Settings that the command line stands for."""
    work: bool
    """Whether jobs that clients start run here."""
    relayed: str = ""
    """The server whose prompts and resources are passed on as well."""


def serve(state: State, offer: Offer, listening: Listening | None) -> int:
    """Serve until the client goes, or until told to stop; the exit status."""
    from remit.cli.running import run_async

    if listening is None:
        if sys.stdin.isatty():
            state.note("waits for an MCP client on stdin; --http serves many")
        return run_async(lambda _stop: _one_client(state, offer))
    return run_async(lambda stop: _many_clients(state, offer, listening, stop), gentle=True)


async def _one_client(state: State, offer: Offer) -> int:
    async with _faced(state, offer, "stdio") as (_, face):
        from remit.mcp_server.stdio import serve_stdio

        await serve_stdio(face)
    return exit_codes.OK


async def _many_clients(state: State, offer: Offer, listening: Listening, stop: Stop) -> int:
    served = offer._replace(flags={**offer.flags, **listening.flags})
    async with _faced(state, served, "http") as (remit, face):
        from remit.cli.door import Door
        from remit.http.router import Mount
        from remit.mcp_server.card import card_mounts
        from remit.mcp_server.endpoint import Endpoint
        from remit.mcp_server.place import PATH

        door = Door(state, listening, remit.settings, remit.clock)
        card = card_mounts(remit.settings.serve.public_url, tokens=not door.guard.open)
        await door.serve([Mount(PATH, Endpoint(face), "call"), *card], PATH, stop.requested)
    return exit_codes.OK


@asynccontextmanager
async def _faced(state: State, offer: Offer, transport: str) -> AsyncIterator[tuple[Remit, ToolServer]]:
    try:
        from remit.mcp_server.client import Terms
        from remit.mcp_server.server import ToolServer
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[mcp]'") from error
    from remit.settings.principal import principal

    # An agent names the folders here.
    flags = recorded(state, {**offer.flags, "fs.search_anywhere": False})
    async with state.remit(creates=True, flags=flags) as remit:
        if offer.work and remit.settings.mcp.expose:
            remit.engine.start(role="serve")
        state.note(f"records in {remit.url}")
        relay = await _relay(state, remit, offer.relayed) if offer.relayed else None
        who = principal(remit.settings)
        journal = flags.get("journal.url")
        confirm = shlex.join(["remit", "--journal", journal, "confirm"]) if journal else state.command("confirm")
        face = ToolServer(
            remit.service,
            offer.names,
            principal=who,
            transport=transport,
            relay=relay,
            confirm=confirm,
            terms=Terms.read(remit.settings),
            clock=remit.clock,
        )
        if relay is not None:
            relay.subscribe(face.changes.heard)
        try:
            async with beside(keep_required(remit)):
                yield remit, face
        finally:
            await face.close()


async def _relay(state: State, remit: Remit, server: str) -> Any:
    """Give the relay of the server's prompts and resources; None while it does not answer: its tools may come later."""
    from remit.mcp_server.relay import Relay

    try:
        status = await remit.service.servers.status(server)
    except RemitError as error:
        state.note(f"{error.message}; it is tried again when its tools are needed")
        return None
    return Relay(remit.service.servers.remote(server), remit.service.sessions, status)
