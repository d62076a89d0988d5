"""`remit mcp wrap`: one MCP server, governed in its place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath

import click

from remit.cli.context import State
from remit.cli.options import pass_state
from remit.cli.serving import http_options

LEVELS = ("L0", "L1", "L2")


@click.command("wrap", context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="NAME", help="What the server is called here. Default: made from the command.")
@click.option("--level", "levels", metavar="TOOL=L0", multiple=True, help="What a tool may do; TOOL may be a pattern.")
@click.option("--era", type=click.Choice(["legacy", "modern"]), help="The protocol the server speaks, if it is known.")
@click.option("--sampling", is_flag=True, help="Let the server ask for the client's model.")
@http_options
@click.argument("words", metavar="-- COMMAND [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_state
def command(
    state: State,
    name: str | None,
    levels: tuple[str, ...],
    era: str | None,
    sampling: bool,
    over_http: bool,
    host: str,
    port: int,
    known_as: tuple[str, ...],
    words: tuple[str, ...],
) -> int:
    """Start an MCP server and govern it in its place.

    In a client's configuration, put `remit mcp wrap --` before the server's command: the client sees the same tools
    under the same names, and every call passes your policy and is recorded. Calls that only read run where you say that
    they do (--level 'get_*=L0'); others ask first. Prompts, resources and the server's questions are passed on.
    """
    from remit.cli.serving import Listening, Offer, serve
    from remit.mcp_server.names import OwnNames

    called = name or name_of(words)
    table = {
        "name": called,
        "command": [word.replace("${", "$${") for word in words],
        "cwd": str(Path.cwd()),
        "env": _passed_on(os.environ),
        "tools": dict(map(_level, levels)),
        "era": era or "auto",
    }
    flags = {"mcp.servers": [table], "mcp.servers_json": "[]", "mcp.elicitation": "forward"}
    if sampling:
        flags["mcp.sampling"] = "forward"
    offer = Offer(OwnNames(called), flags, work=False, relayed=called)
    return serve(state, offer, Listening(host, port, known_as) if over_http else None)


def name_of(words: tuple[str, ...]) -> str:
    """A server's name made from its command: of `npx -y @scope/server-memory@1.2`, `memory`."""
    import re

    plain = [word for word in words if not word.startswith("-")]
    runners = {"npx", "uvx", "node", "python", "python3", "uv", "run", "docker", "bunx", "pnpm", "dlx"}
    named = [word for word in plain if PurePath(word).name not in runners] or plain or list(words)
    bare = re.sub(r"(?<=.)@[^/]*$", "", named[0])
    stem = PurePath(bare).name.removesuffix(".py").removesuffix(".js").lower()
    parts = [part for part in re.split(r"[^a-z0-9]+", stem) if part]
    useful = [part for part in parts if part not in {"mcp", "server"}] or parts
    return "_".join(useful)[:40].strip("_") or "server"


def _passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """References to all the client gave us but our own settings: the server sees what it would see without us."""
    import re

    named = (name for name in environ if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII))
    return {name: f"${{{name}}}" for name in named if not name.startswith("REMIT_")}


def _level(text: str) -> tuple[str, str]:
    tool, _, level = text.rpartition("=")
    if not tool or level not in LEVELS:
        raise click.BadParameter(f"{text!r} is not like get_*=L0", param_hint="--level")
    return tool, level
