"""`remit mcp pin`: take a server's tools as they are.

`remit mcp diff`: what happened to a server's tools since they were pinned.

`remit mcp approve`: take the changes that were shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import Behind, json_option, pass_state
from remit.cli.servers import complete_servers
from remit.cli.values import usage_error
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.tools.pins import Definitions, Pin


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
def pin(
    context: click.Context, state: CommandState, name: str | None, words: tuple[str, ...], target: Path | None
) -> int:
    """Accept a server's tools as they are now.

    After that, a tool that is new or changes in any word is withheld until someone has seen the change (`remit mcp
    diff`) and accepted it (`remit mcp approve`). Levels by pattern count from then on. The journal records the pin
    under your name. For a server that only `remit mcp wrap` knows, give its COMMAND as well.

    --export writes what is pinned to a file that you can check in: with NO_MCP, stubs stand in for the tools in it.
    """
    from remit.cli.servers import pin_shown
    from remit.cli.wrap_server import recorded, wrapped

    if (name is None) == (target is None):
        raise click.UsageError("Give either NAME or --export FILE.", context)
    if name is None or target is not None:
        return _export(state, target)

    flags = recorded(state, wrapped(name, words)) if words else None
    pin = state.ask(
        lambda remit: remit.service.servers.pin(name), code="unused", servers=True, creates=True, flags=flags
    )
    return state.done(pin_shown(name, pin), f"pinned {len(pin.tools)} tools of {name}")


def _export(state: CommandState, target: Path | None) -> int:
    """Write what is pinned of every server; nothing is connected."""
    from remit.cli.file_writer import write
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


@click.command("diff", cls=Behind)
@click.argument("name", shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@json_option("the differences")
@pass_state
def diff(state: CommandState, name: str, words: tuple[str, ...]) -> int:
    """Show what changed in a server's tools since they were pinned.

    Shows every word that a model would read. Changed and new tools stay withheld until `remit mcp approve`; the exit
    status says whether there are any. For a server that only `remit mcp wrap` knows, give its COMMAND as well.
    """
    from remit.cli.servers import plain, show
    from remit.cli.wrap_server import recorded, wrapped

    flags = recorded(state, wrapped(name, words)) if words else None

    async def look(remit: Opened) -> object:
        difference = await remit.service.servers.diff(name)
        state.show(plain(difference), lambda state, _: show(state, difference))
        return difference.changes

    return exit_codes.FAILED if state.ask(look, code="unused", servers=True, flags=flags) else exit_codes.OK


@click.command("approve", cls=Behind)
@click.argument("name", shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--digest", help="The digest that `remit mcp diff --json` printed, for use without a terminal.")
@json_option("the new pin")
@pass_state
def approve(state: CommandState, name: str, words: tuple[str, ...], digest: str | None) -> int:
    """Accept a server's changed tools, once you have seen the changes.

    At a terminal, shows the changes and asks you. Without a terminal, --digest names the changes you saw: if the server
    has changed again since, nothing is approved. Running processes use the approved tools at once. For a server that
    only `remit mcp wrap` knows, give its COMMAND as well.
    """
    from remit.cli.servers import pin_shown, show
    from remit.cli.wrap_server import recorded, wrapped

    flags = recorded(state, wrapped(name, words)) if words else None

    async def approve(remit: Opened) -> Pin | None:
        servers = remit.service.servers
        shown = digest
        if shown is None:
            difference = await servers.diff(name)
            if not difference.changes:
                return None
            if state.as_json or not state.output.interactive:
                raise UsageError(
                    "there is no terminal on which to approve the changes",
                    remedy=f"Review `remit mcp diff {name}`, then pass --digest {difference.digest}.",
                )
            show(state, difference)
            click.confirm(f"Accept these tools of {name}?", err=True, abort=True)
            shown = difference.digest
        return await servers.approve(name, shown)

    pin = state.ask(approve, code="unused", servers=True, creates=True, flags=flags)
    if pin is not None:
        return state.done(pin_shown(name, pin), f"accepted the tools of {name}")
    return state.show(None, lambda state, _: state.note(f"nothing has changed in {name} since it was pinned"))
