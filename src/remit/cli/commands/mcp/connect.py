"""`remit mcp connect`: Remit in the configuration of another MCP client.

`remit mcp disconnect`: Remit out of the configuration of another MCP client.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remit.cli.context import CommandState
from remit.cli.options import LEVELS, json_option, pass_state
from remit.cli.servers import agreed, place, report, shown_difference
from remit.errors import SettingsError, UsageError
from remit.mcp_config.places import CLIENTS

if TYPE_CHECKING:
    from remit.mcp_config.connections import ClientFile, ServerChange
    from remit.mcp_config.places import Client


@click.command("connect")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option(
    "--wrap", "wrap", metavar="SERVER", multiple=True, help="Put Remit before this server of its; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Put Remit before all its servers.")
@click.option(
    "--level", "levels", metavar="TOOL=L0", multiple=True, help="With --wrap or --all: the level of a tool; repeatable."
)
@click.option("--name", default="remit", metavar="NAME", show_default=True, help="Without --wrap: the server's name.")
@click.option("--project", is_flag=True, help="The servers of this project in place of its user's.")
@click.option("--file", "other", type=click.Path(path_type=Path), help="Another file of the client's.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("what is changed")
@pass_state
def connect(
    state: CommandState,
    client: Client,
    wrap: tuple[str, ...],
    everything: bool,
    levels: tuple[str, ...],
    name: str,
    project: bool,
    other: Path | None,
    yes: bool,
) -> int:
    """Put Remit into another MCP client's configuration.

    Adds `remit mcp serve` as one more server of the client. With --wrap or --all, puts `remit mcp wrap` before the
    servers that the client starts, or reaches at a URL. Shows the difference and asks; writes nothing if no one can
    answer, or with --json, unless you say --yes. `remit mcp disconnect` takes it back. Restart the client afterwards.
    """
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.mcp_config.connection_record import put_together
    from remit.mcp_config.connections import ClientFile

    file, record = place(state, client, project=project, other=other)
    text = read_text(file) if file.exists() else None
    before = ClientFile(text or "", client, str(file))
    notes: list[str] = []
    if levels and not (wrap or everything):
        raise click.BadParameter("it is for servers that are wrapped: --wrap or --all", param_hint="--level")
    if wrap or everything:
        after, changes = _wrapped(state, before, wrap, levels, notes, everything=everything)
    else:
        after, change = before.served(name, _program(state, "serve"))
        changes = (change,)
    difference = shown_difference(file, text or "", after.text)
    written = bool(changes) and agreed(state, difference, f"Change {file}?", yes=yes)
    if written:
        record.keep(put_together(record.read(), file, client, text, after.text, changes))
        replace_text(file, after.text)
    names = [change.name for change in changes]
    done = f"connected {client}: {', '.join(names)}" if written else ""
    fields = {"file": str(file), "client": client, "servers": names, "notes": notes, "diff": difference}
    return state.show({**fields, "written": written}, lambda state, _: report(state, notes, done))


def _wrapped(
    state: CommandState,
    file: ClientFile,
    wanted: tuple[str, ...],
    levels: tuple[str, ...],
    notes: list[str],
    *,
    everything: bool,
) -> tuple[ClientFile, tuple[ServerChange, ...]]:
    """The file with Remit before these servers, or before all that can have it; why others cannot goes to `notes`."""
    from remit.mcp_config.plan import server_name

    missing = [name for name in wanted if name not in file.servers]
    if missing:
        remedy = f"It has: {', '.join(file.servers) or 'none'}."
        raise UsageError(f"the client has no server {', '.join(missing)}", remedy=remedy)
    changes = []
    notes += [f"{name}: it is no server, and stays as it is" for name in file.odd if everything]
    options = [word for level in levels for word in ("--level", _checked(level))]
    for name in file.servers if everything else dict.fromkeys(wanted):
        if _is_ours(file.servers[name]):
            notes.append(f"{name}: Remit is there already")
            continue
        prefix = [*_program(state, "wrap"), "--name", server_name(name), *options]
        try:
            file, change = file.wrapped(name, prefix)
        except SettingsError as error:
            if not everything:
                raise
            notes.append(error.message)
        else:
            changes.append(change)
            notes += _login(change)
    return file, tuple(changes)


def _login(change: ServerChange) -> list[str]:
    """Say how to log in to a server that was reached without a key; the client's own login is not ours."""
    args = change.entry["args"]
    if "--url" not in args or any(word.lower().startswith("authorization=") for word in args):
        return []
    url, name = args[args.index("--url") + 1], args[args.index("--name") + 1]
    command = shlex.join(["remit", "mcp", "login", "--url", url, "--name", name])
    return [f"{change.name}: if it wants a login, once: {command}"]


def _checked(level: str) -> str:
    tool, _, wanted_level = level.rpartition("=")
    if not tool or wanted_level not in LEVELS:
        raise click.BadParameter(f"{level!r} does not look like get_*=L0", param_hint="--level")
    return level


def _is_ours(entry: dict[str, Any]) -> bool:
    """Return whether it starts Remit."""
    args = entry.get("args")
    pairs = pairwise(args) if isinstance(args, list) else ()
    return any(pair in {("mcp", "wrap"), ("mcp", "serve")} for pair in pairs)


def _program(state: CommandState, word: str) -> list[str]:
    """The command with its whole path, as a desktop program rarely has our PATH, and the file that it is to read."""
    settings = state.settings()
    beside = Path(sys.executable).with_name("remit")
    program = str(beside) if beside.is_file() else shutil.which("remit")
    start = [program] if program else [sys.executable, "-P", "-m", "remit"]
    if settings.file is not None:
        start += ["--config", str(settings.file.absolute())]
    elif word == "serve":
        raise UsageError(
            "there is no remit.toml to serve", remedy="Make one: remit init. Or wrap servers: --wrap NAME."
        )
    return [*start, "mcp", word]


@click.command("disconnect")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--project", is_flag=True, help="The servers of this project in place of its user's.")
@click.option("--file", "other", type=click.Path(path_type=Path), help="Another file of the client's.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("what is changed")
@pass_state
def disconnect(state: CommandState, client: Client, project: bool, other: Path | None, yes: bool) -> int:
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
    fields = {"file": str(file), "client": client, "servers": names, "diff": difference, "written": written}
    return state.show(fields, lambda state, _: report(state, [], done))
