"""`remit mcp import`: servers that other MCP clients' files name."""  # noqa: N999 - the command is called import

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.errors import SettingsError, UsageError
from remit.mcp_config.places import CLIENTS
from remit.redact import line

if TYPE_CHECKING:
    from remit.mcp_config.foreign import FileContent
    from remit.mcp_config.places import Client
    from remit.mcp_config.plan import Planned
    from remit.settings import Settings

_TITLES = {"new": "found", "known": "known", "skipped": "skipped"}


@click.command("import")
@click.argument("words", nargs=-1, metavar="[FILE] [NAME]...", type=click.Path())
@click.option(
    "--from",
    "client",
    type=click.Choice(CLIENTS),
    help="The client that wrote FILE. Default: detected; without FILE, all clients.",
)
@click.option("--all", "everything", is_flag=True, help="Import every server found.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--keep-secrets", is_flag=True, help="Copy secrets too; makes remit.toml readable only by you.")
@json_option("what happened to each server")
@pass_state
def command(
    state: CommandState,
    words: tuple[str, ...],
    client: Client | None,
    everything: bool,
    dry_run: bool,
    keep_secrets: bool,
) -> int:
    """Import servers from other MCP clients.

    FILE is the configuration of another client. Without FILE, looks in the usual places of Claude Desktop, Claude Code,
    Cursor, VS Code and Codex. Without --all or a NAME, only lists the servers. Secrets are not copied: ${NAME} takes
    their place, and you are told which variables to set. What cannot be imported is listed.
    """
    import os

    from remit.cli.servers import base_of, settings_file, warn_of_rival
    from remit.cli.trust_question import still_trusted
    from remit.mcp_config.plan import plan
    from remit.settings.mcp_servers import written_servers

    settings = state.settings()
    file = settings_file(settings)
    source, wanted = _split(words)
    if everything and wanted:
        raise UsageError("--all and NAME exclude each other", remedy="Leave one of them out.")
    imported = _found(settings, source, client)
    existing = written_servers(settings, os.environ).servers
    planned = plan(imported.servers, existing, wanted, base_of(file), keep_secrets=keep_secrets)
    _check_wanted(wanted, planned, imported)
    writes = (everything or bool(wanted)) and not dry_run
    if writes:
        with still_trusted(state.settings, trusted=state.trust):
            _write(file, planned, private=keep_secrets)
    if state.as_json:
        servers = [_shown(server, written=writes) for server in planned]
        state.output.json({"file": str(file), "written": writes, "servers": servers, "notes": imported.notes})
    else:
        _print(state, file, planned, imported.notes, written=writes)
        warn_of_rival(state, settings, file)
        if not (writes or dry_run) and any(server.status == "new" for server in planned):
            state.note("nothing was written: name servers, or use --all")
    return exit_codes.OK


def _split(words: tuple[str, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """The file and the names: a first word that looks like a path or is one is the file."""
    if words and (os.sep in words[0] or words[0].endswith((".json", ".toml")) or Path(words[0]).is_file()):
        return Path(words[0]).expanduser(), words[1:]
    return None, words


def _found(settings: Settings, source: Path | None, client: Client | None) -> FileContent:
    from remit.mcp_config.foreign import FileContent, read_foreign, without
    from remit.mcp_config.places import usual_places

    projects = {settings.folder, settings.working_folder}
    if source is not None:
        return read_foreign(source, client, projects)
    imported = FileContent([], [])
    off: set[str] = set()
    for place in usual_places(settings.folder, os.environ, mac=sys.platform == "darwin"):
        if client in {None, place.client} and place.file.is_file():
            try:
                more = read_foreign(place.file, place.client, projects)
            except SettingsError as error:
                imported.notes.append(error.message)  # the other files are still of use
            else:
                imported.servers.extend(more.servers)
                imported.notes.extend(more.notes)
                off |= more.off
    imported.servers[:] = [
        without(server, off) if server.file.name == ".mcp.json" else server for server in imported.servers
    ]
    return imported


def _check_wanted(wanted: tuple[str, ...], planned: list[Planned], content: FileContent) -> None:
    from remit.mcp_config.plan import server_name

    originals = {server.original for server in planned}
    there = originals | {server_name(name) for name in originals}
    missing = [name for name in wanted if name not in there]
    if missing:
        names = ", ".join(dict.fromkeys(server.name for server in content.servers)) or "none"
        raise UsageError(f"no server {', '.join(missing)} was found", remedy=f"Found: {names}.")


def _write(file: Path, planned: list[Planned], *, private: bool) -> None:
    from remit.mcp_config.array_tables import with_server
    from remit.mcp_config.config_file import read_text, replace_text

    before = text = read_text(file)
    for server in planned:
        if server.status == "new":
            text = with_server(text, server.table)
    if text != before:
        replace_text(file, text, private=private)


def _shown(server: Planned, *, written: bool) -> dict[str, Any]:
    status = "imported" if written and server.status == "new" else _TITLES[server.status]
    fields = ("name", "original", "client", "file", "transport", "where", "notes", "variables")
    return {**{field: getattr(server, field) for field in fields}, "status": status}


def _print(state: CommandState, file: Path, planned: list[Planned], notes: list[str], *, written: bool) -> None:
    from remit.cli.tables import TableColumn, table

    out = state.output.out
    rows = [_shown(server, written=written) for server in planned]
    columns = ("SERVER", "STATUS", TableColumn("WHERE", whole=False), TableColumn("FROM", whole=False, style="dim"))
    table(out, columns, [(row["name"], row["status"], row["where"], row["file"]) for row in rows])
    for server in planned:
        for note in server.notes:
            out.line(f"{server.name}: {one_line(note)}")
    for note in notes:
        out.line(one_line(note))
    variables = {name: meaning for server in planned for name, meaning in server.variables.items()}
    for name, meaning in variables.items():
        out.line(f"set {name} in the environment: {line(meaning)}{' (it is set)' if name in os.environ else ''}")
    if written and any(row["status"] == "imported" for row in rows):
        state.note(f"written to {file}; next: {state.command('mcp', 'list')}")
    if not planned and not notes:
        state.note("no servers were found in the usual places; name a FILE")
