"""The files of MCP clients that are changed by command: which one, what differs, and whether it may be written."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.text import one_line
from remit.errors import UsageError
from remit.redact import mask

if TYPE_CHECKING:
    from remit.mcp_config.connection_record import ConnectionRecord
    from remit.mcp_config.places import Client


def place(state: State, client: Client, *, project: bool, other: Path | None) -> tuple[Path, ConnectionRecord]:
    """Return a client's file, and the record of what was done to it. Raises UsageError."""
    from remit.cli.servers import settings_file
    from remit.mcp_config.connection_record import ConnectionRecord
    from remit.mcp_config.places import file_of
    from remit.settings.places import data_folder

    settings = state.settings()
    settings_file(settings)  # says what is not installed
    folder = settings.folder if project else None
    file = (
        other.expanduser() if other is not None else file_of(client, os.environ, folder, mac=sys.platform == "darwin")
    )
    if file is None:
        where = "for projects" if project else "without HOME"
        raise UsageError(f"{client} has no file {where}", remedy="Name its file: --file FILE.")
    return file, ConnectionRecord(data_folder(os.environ) / "connections", file)


def shown_difference(file: Path, before: str, after: str) -> str:
    """Return a unified diff, its secrets masked; empty if nothing differs."""
    from remit.files.edits import whole_diff

    return mask(whole_diff(str(file).removeprefix("/"), before, after)) if before != after else ""


def agreed(state: State, difference: str, question: str, *, yes: bool) -> bool:
    """Show what would be different, and ask whether to write it. Raises UsageError where no one can be asked."""
    from remit.redact.visible import visible

    if state.as_json:
        return yes
    out = state.output.out
    for line in difference.splitlines():
        out.line(out.style(visible(line), {"+": "ok", "-": "failed"}.get(line[:1], "dim")))
    if yes:
        return True
    if not state.output.interactive:
        raise UsageError("nothing was written: no one is here to agree", remedy="Say that you do: --yes.")
    return click.confirm(question, err=True)


def report(state: State, notes: list[str], done: str) -> None:
    """Say what was left aside, and what was done."""
    out = state.output.out
    for note in notes:
        out.line(one_line(note))
    if done:
        out.line(f"{out.style('ok', 'ok')} {done}")
    else:
        state.note("nothing was written")
