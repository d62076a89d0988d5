"""`remit mcp disconnect`: Remit out of the configuration of another MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import agreed, place, report, shown_difference
from remit.errors import UsageError
from remit.mcp_config.places import CLIENTS

if TYPE_CHECKING:
    from remit.mcp_config.places import Client


@click.command("disconnect")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--project", is_flag=True, help="The servers of this project in place of its user's.")
@click.option("--file", "other", type=click.Path(path_type=Path), help="Another file of the client's.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("what is changed")
@pass_state
def command(state: State, client: Client, project: bool, other: Path | None, yes: bool) -> int:
    """Take Remit out of another MCP client's configuration.

    Takes back what `remit mcp connect` did: the file is as it was before, byte for byte. If it was changed since, only
    Remit's own changes are taken back, and the rest stays.
    """
    from remit.mcp_config.config_file import read_text, remove, replace_text
    from remit.mcp_config.connection_record import taken_back

    file, record = place(state, client, project=project, other=other)
    connection = record.read()
    if connection is None:
        remedy = f"Look for yourself: {file}."
        raise UsageError(f"`remit mcp connect {client}` changed nothing in {file}", remedy=remedy)
    text = read_text(file)
    after = taken_back(connection, text)
    difference = shown_difference(file, text, after or "")
    names = [change.name for change in connection.changes]
    written = agreed(state, difference, f"Change {file}?", yes=yes)
    if written:
        if after is None:
            remove(file)
        elif after != text:
            replace_text(file, after)
        record.forget()
    done = f"disconnected {client}: {', '.join(names)}" if written else ""
    found = {"file": str(file), "client": client, "servers": names, "diff": difference, "written": written}
    return state.show(found, lambda state, _: report(state, [], done))
