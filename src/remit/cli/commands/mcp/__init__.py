"""`remit mcp`: the MCP servers whose tools are used."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "serve": Entry("Clients", "Serve the tools of this project to MCP clients."),
    "wrap": Entry("Clients", "Start an MCP server, and govern the calls to it."),
    "add": Entry("Servers", "Add a server to remit.toml."),
    "test": Entry("Servers", "Connect to servers and show what they answer."),
    "show": Entry("Servers", "Show a server, its tools and what is pinned."),
    "login": Entry("Servers", "Log in to a server that uses OAuth."),
    "list": Entry("Servers", "List the servers and where each is defined."),
    "remove": Entry("Servers", "Remove a server from remit.toml."),
    "import": Entry("Servers", "Import servers from other MCP clients."),
    "pin": Entry("Pins", "Accept a server's tools as they are now."),
    "diff": Entry("Pins", "Show what changed in a server's tools since they were pinned."),
    "approve": Entry("Pins", "Accept a server's changed tools, once you have seen the changes."),
}


@click.group("mcp", cls=LazyGroup, package="remit.cli.commands.mcp", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Use MCP servers, and serve tools to MCP clients.

    Servers are tables in remit.toml; see docs/configuration.md.
    """
    show_help(context)
