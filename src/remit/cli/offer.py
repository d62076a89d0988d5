"""Opening a Remit for MCP clients that connect, and serving it to them over stdio or HTTP."""

from __future__ import annotations

import os
import select
import shlex
import sys
import termios
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from fcntl import ioctl
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.cli import exit_codes
from remit.cli.context import not_there
from remit.cli.services import beside, keep_required, keep_restarts
from remit.cli.settings_watch import keep_settings
from remit.cli.wrap_server import recorded
from remit.errors import NotFoundError, SettingsError, StateError, UsageError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import CommandState
    from remit.cli.listen_options import ListenOptions
    from remit.cli.runner import SignalStop
    from remit.mcp_server.offer import Names
    from remit.mcp_server.relay import Relay
    from remit.mcp_server.relays import Relays
    from remit.mcp_server.server import ToolServer
    from remit.mcp_server.stdio import LineWire
    from remit.service.mcp import McpServers
    from remit.tools.remote import RemoteStatus

STARTS: Final = 3
"""Attempts to start a wrapped server before its client is refused."""
SOON_S: Final = 10.0
"""Seconds after which a failed start is not tried again."""


class ServedOffer(NamedTuple):
    """The offer that is served."""

    names: Names
    flags: dict[str, Any]
    """Settings that the command line stands for."""
    work: bool
    """Whether jobs that clients start run here."""
    relayed: str = ""
    """The server whose prompts and resources are passed on as well."""


def serve(state: CommandState, offer: ServedOffer, listening: ListenOptions | None) -> int:
    """Serve until the client goes, or until told to stop; the exit status."""
    from remit.cli.runner import run_async

    if listening is None:
        if sys.stdin is None or sys.stdout is None:
            raise UsageError("stdin and stdout have to be open", remedy="Let an MCP client start this, or use --http.")
        if sys.stdin.isatty():
            state.note("waits for an MCP client on stdin; --http serves many")
        if _has_gone():
            _check(state, offer)
            return _unserved(state)
        return run_async(lambda _stop: _one_client(state, offer))
    return run_async(lambda stop: _many_clients(state, offer, listening, stop), gentle=True)


async def _one_client(state: CommandState, offer: ServedOffer) -> int:
    async with _opened(state, offer) as remit:
        from remit.mcp_server.stdio import ClientGoneError, serve_stdio, standard_streams

        async with standard_streams() as wire:
            for name in remit.service.servers.known():
                _serve_only(remit, name, wire)
            try:
                relay = await wire.while_there(_relay(remit, offer.relayed, wire))
            except ClientGoneError:
                return _unserved(state)
            except StateError as error:
                await wire.refuse(error.message)
                raise
            keeping = keep_settings(state, remit, _flags(offer), arrived=lambda name: _serve_only(remit, name, wire))
            parts = beside(_drain(remit, wire), keeping)
            async with _faced(state, remit, offer, relay, "stdio") as face, parts:
                await serve_stdio(face, wire)
    return exit_codes.OK


def _has_gone() -> bool:
    """Return whether the client has closed our stdin already, and said nothing before."""
    if os.path.samestat(os.fstat(0), os.stat(os.devnull)):  # noqa: PTH116 - beside a number
        return True
    stdin = select.poll()
    stdin.register(0, select.POLLIN)
    ended = any(event & select.POLLHUP for _, event in stdin.poll(0))
    return ended and not any(ioctl(0, termios.FIONREAD, bytes(4)))


def _check(state: CommandState, offer: ServedOffer) -> None:
    """Refuse what would be refused to a client that is there. Raises UsageError or SettingsError."""
    if state.server:
        raise not_there()
    state.trusted(recorded(state, _flags(offer)))


def _unserved(state: CommandState) -> int:
    state.note("the client went before it was served")
    return exit_codes.OK


def _serve_only(remit: Remit, server: str, wire: LineWire) -> None:
    remit.service.servers.remote(server).serve_only(wire.client)


async def _drain(remit: Remit, wire: LineWire) -> None:
    """Give what a client asked before the end of its input `mcp.drain_ms` from when all servers are up, or failed."""
    await wire.ended.wait()
    await remit.service.tools.metas()
    wire.wait(remit.settings.mcp.drain_ms / 1_000)


async def _many_clients(state: CommandState, offer: ServedOffer, listening: ListenOptions, stop: SignalStop) -> int:
    try:
        from remit.mcp_server.endpoint import Endpoint
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[mcp]'") from error
    served = offer._replace(flags={**offer.flags, **listening.flags})
    async with AsyncExitStack() as stack:
        remit = await stop.unless(stack.enter_async_context(_opened(state, served)))
        if remit is None:
            return exit_codes.OK
        from remit.cli.door import ServerDoor
        from remit.http.router import PartMount
        from remit.mcp_server.card import card_mounts, resource_mounts
        from remit.mcp_server.request import PATH

        door = ServerDoor(state, listening, remit.settings, remit.clock)
        card = card_mounts(remit.settings.serve.public_url, tokens=not door.guard.open)
        card += resource_mounts(door.guard.issuers)
        relay = await _relay(remit, offer.relayed)
        keeping = keep_settings(state, remit, _flags(served), hangup=True)
        async with _faced(state, remit, offer, relay, "http") as face, beside(keeping):
            await door.serve([PartMount(PATH, Endpoint(face), "call"), *card], PATH, stop.requested)
    return exit_codes.OK


@asynccontextmanager
async def _opened(state: CommandState, offer: ServedOffer) -> AsyncIterator[Remit]:
    async with state.remit(creates=True, flags=recorded(state, _flags(offer))) as remit, remit.sending():
        state.note(f"records in {remit.url}")
        yield remit


def _flags(offer: ServedOffer) -> dict[str, Any]:
    """The settings that the command line stands for; an agent names the folders here."""
    return {**offer.flags, "fs.search_anywhere": False}


@asynccontextmanager
async def _faced(
    state: CommandState, remit: Remit, offer: ServedOffer, relay: Relay | Relays | None, transport: str
) -> AsyncIterator[ToolServer]:
    from remit.mcp_server.request import AskingTerms
    from remit.mcp_server.server import ToolServer
    from remit.settings.principal import principal

    if offer.work and remit.settings.mcp.expose:
        remit.engine.start(role="serve")
    journal = recorded(state, offer.flags).get("journal.url")
    confirm = shlex.join(["remit", "--journal", journal, "confirm"]) if journal else state.command("confirm")
    face = ToolServer(
        remit.service,
        offer.names,
        principal=principal(remit.settings),
        transport=transport,
        relay=relay,
        confirm=confirm,
        terms=AskingTerms.read(remit.settings),
        clock=remit.clock,
    )
    try:
        async with beside(keep_required(remit), keep_restarts(remit)):
            yield face
    finally:
        await face.close()


async def _relay(remit: Remit, server: str, wire: LineWire | None = None) -> Relay | Relays | None:
    """Give the relay of what the server offers beside tools; None where there is no such server.

    A client whose input has ended hears of the first start that fails. Raises StateError where it cannot be started.
    """
    from remit.mcp_server.relay import Relay

    service = remit.service
    if not server:
        return relays_of(remit)
    try:
        remote = service.servers.remote(server)
    except NotFoundError:  # stubs stand in for it
        return None
    return Relay(remote, service.sessions, await _status(service.servers, server, wire))


def relays_of(remit: Remit) -> Relays:
    """Give the relay of what all servers offer beside tools."""
    from remit.mcp_server.relays import Relays

    return Relays(remit.service.servers, remit.service.sessions, instructions=remit.settings.mcp.instructions)


async def _status(servers: McpServers, server: str, wire: LineWire | None) -> RemoteStatus:
    """Give the status of a server that is up; its first start may fail by chance, if it does so soon."""
    began = time.monotonic()
    for _ in range(STARTS - 1):
        try:
            return await servers.status(server)
        except StateError:
            if (wire is not None and wire.ended.is_set()) or time.monotonic() - began > SOON_S:
                raise
    return await servers.status(server)
