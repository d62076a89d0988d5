"""`remit mcp pin`: take a server's tools as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import Behind, json_option, pass_state
from remit.cli.servers import complete_servers
from remit.cli.values import usage_error
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.tools.pins import Definitions


@click.command("pin", cls=Behind)
@click.argument("name", required=False, shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--export",
    "target",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the pins of all servers to a file for mcp.pins_file, without pinning again.",
)
@json_option("the pin")
@pass_state
@click.pass_context
def command(context: click.Context, state: State, name: str | None, words: tuple[str, ...], target: Path | None) -> int:
    """Accept a server's tools as they are now.

    After that, a tool that is new or changes in any word is withheld until someone has seen the change (`remit mcp
    diff`) and accepted it (`remit mcp approve`). Levels by pattern count from then on. The journal records the pin
    under your name. For a server that only `remit mcp wrap` knows, give its COMMAND as well.

    --export writes what is pinned to a file that you can check in: with NO_MCP, stubs stand in for the tools in it.
    """
    from remit.cli.servers import pin_shown
    from remit.cli.wrapping import recorded, wrapped

    if (name is None) == (target is None):
        raise click.UsageError("Give either NAME or --export FILE.", context)
    if name is None or target is not None:
        return _export(state, target)

    flags = recorded(state, wrapped(name, words)) if words else None
    pin = state.ask(
        lambda remit: remit.service.servers.pin(name), code="unused", servers=True, creates=True, flags=flags
    )
    return state.done(pin_shown(name, pin), f"pinned {len(pin.tools)} tools of {name}")


def _export(state: State, target: Path | None) -> int:
    """Write what is pinned of every server; nothing is connected."""
    from remit.cli.saving import write
    from remit.tools.pins import written_pins

    async def look(remit: Opened) -> dict[str, Definitions]:
        servers = remit.service.servers
        pins = {entry.name: await servers.pin_of(entry.name) for entry in await servers.entries()}
        return {name: pin.definitions for name, pin in pins.items() if pin is not None}

    pinned = state.ask(look, code="unused", servers=True)
    if target is None or not pinned:
        raise UsageError("no server is pinned", remedy="Pin one: remit mcp pin NAME")
    with usage_error(str(target), "Choose another file."):
        write(target, written_pins(pinned))
    state.note(f"wrote {target}: {', '.join(sorted(pinned))}")
    return exit_codes.OK
