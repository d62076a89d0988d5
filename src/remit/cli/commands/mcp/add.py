"""`remit mcp add`: one more server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import LEVELS, json_option, pairs, pass_state
from remit.errors import UsageError
from remit.settings.mcp import McpServer, terms_of


@click.command("add")
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[-- COMMAND [ARG]...]")
@click.option("--url", default="", metavar="URL", help="The URL of a server on streamable HTTP.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="A header to send to the URL; repeatable.")
@click.option("--env", multiple=True, metavar="K=V", help="An environment variable for the command; repeatable.")
@click.option("--cwd", default="", metavar="DIR", help="Where the command starts. Default: the project folder.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    metavar="[TOOL=]L0|L1|L2",
    help="The level of a tool or pattern, or of all other tools; repeatable. Default: L2.",
)
@click.option("--timeout", type=click.FloatRange(min=0.001, max=86_400), metavar="S", help="Seconds a call may take.")
@click.option(
    "--root", "roots", multiple=True, metavar="PATH", help="A path that the server can read in the sandbox; repeatable."
)
@click.option(
    "--writable", multiple=True, metavar="DIR", help="A folder that the server can also write to; repeatable."
)
@click.option("--network", multiple=True, metavar="HOST", help="A host that the server may reach by HTTP; repeatable.")
@click.option("--no-sandbox", is_flag=True, help="Start the server without the sandbox, with your own rights.")
@click.option(
    "--era", type=click.Choice(["legacy", "modern"]), help="The protocol that the server speaks. Default: detected."
)
@json_option("what was written")
@pass_state
def command(
    state: CommandState,
    name: str,
    words: tuple[str, ...],
    url: str,
    headers: tuple[str, ...],
    env: tuple[str, ...],
    cwd: str,
    levels: tuple[str, ...],
    timeout: float | None,
    era: str | None,
    roots: tuple[str, ...],
    writable: tuple[str, ...],
    network: tuple[str, ...],
    no_sandbox: bool,
) -> int:
    """Add a server to remit.toml.

    Give the command that starts it after --, or the URL where it answers. Keep secrets out of the file: write ${NAME}
    for the environment variable that holds one. Nothing is started or connected.

    A command runs in the sandbox unless you give --no-sandbox. It sees its own installation, the paths among its
    arguments and those of --root and --writable, and reaches only the hosts of --network.
    """
    from remit.cli.servers import settings_file, warn_of_rival

    settings = state.settings()
    file = settings_file(settings)
    if (roots or writable or network) and (no_sandbox or not words):
        raise UsageError("--root, --writable and --network belong to the sandbox", remedy="Leave them out.")
    start = Path(cwd or file.parent).absolute()
    sandbox = not no_sandbox and proposed(words, start, roots=roots, writable=writable, network=network)
    table = {
        "name": name,
        "command": list(words),
        "cwd": _folder(cwd, file),
        "env": pairs(env, "--env"),
        "url": url,
        "headers": pairs(headers, "--header"),
        "timeout_ms": round((timeout or 0) * 1000),
        "era": era,
        **_levels(levels),
        "sandbox": sandbox,
    }
    server = _written(state, file, {key: value for key, value in table.items() if value})
    shown = {"name": server.name, "file": str(file), "transport": server.transport, "where": server.where}
    state.done({**shown, "isolation": server.isolation}, f"{server.name} is in {file}")
    for variable in _unset(server):
        state.note(f"set {variable} in the environment before you use it")
    if server.isolation != "elsewhere":
        state.note(isolation_note(server))
    warn_of_rival(state, settings, file)
    state.note(f"next: {state.command('mcp', 'test', name)}, then {state.command('mcp', 'pin', name)}")
    return exit_codes.OK


def _written(state: CommandState, file: Path, table: dict[str, Any]) -> McpServer:
    """Check the table, hold it against the file, and write it. Raises UsageError."""
    from remit.cli.servers import base_of
    from remit.cli.trust_question import still_trusted
    from remit.mcp_config.array_tables import server_names, with_server
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.mcp_config.secrets import refuse_secrets
    from remit.settings.mcp_servers import read_server

    server = read_server(table, "the new server", base_of(file), str(file.parent))
    refuse_secrets(server.name, table, "nothing was written")
    text = read_text(file)
    if server.name in server_names(text):
        raise UsageError(
            f"{file} already has a server {server.name}",
            remedy=f"Choose another name, or run `remit mcp remove {server.name}` first.",
        )
    with still_trusted(state.settings, trusted=state.trust):
        replace_text(file, with_server(text, table))
    return server


def _levels(texts: tuple[str, ...]) -> dict[str, Any]:
    """The keys `level` and `tools`."""
    tools: dict[str, str] = {}
    level = ""
    for text in texts:
        tool, _, value = text.rpartition("=")
        if value not in LEVELS:
            raise UsageError(f"--level {text} is not a level", remedy="Write --level TOOL=L0, L1 or L2.")
        if tool:
            tools[tool] = value
        else:
            level = value
    return {"level": level, "tools": tools}


def _folder(cwd: str, file: Path) -> str:
    """The folder as the file should name it: relative where it is in the project."""
    if not cwd:
        return ""
    folder = Path(cwd).expanduser().resolve()
    return str(folder.relative_to(file.parent)) if folder.is_relative_to(file.parent) else str(folder)


def _unset(server: McpServer) -> list[str]:
    """The variables that it needs and that are not set here."""
    from remit.settings.expansion import variables

    texts = (*server.command, server.url, *server.env.values(), *server.headers.values())
    return list(dict.fromkeys(name for text in texts for name in variables(text) if name not in os.environ))


_FETCHERS: Final = frozenset({"npx", "uvx", "pipx", "bunx"})
"""Programs that download what they run."""
_PACKAGES: Final = "node_modules"
_MARKS: Final = ("package.json", "pyproject.toml")
"""Files in the folder of a program."""


def proposed(
    words: tuple[str, ...], folder: Path, *, roots: tuple[str, ...], writable: tuple[str, ...], network: tuple[str, ...]
) -> bool | dict[str, Any]:
    """The key `sandbox` for a command that starts in `folder`: with what its arguments name, which it can read.

    False if there is no command.
    """
    paths = [str(Path(path).expanduser().absolute()) for path in (*roots, *writable)]
    named = [path for word in words[1:] for path in _named(word, folder) if path not in paths]
    table = {
        "roots": list(dict.fromkeys([*paths[: len(roots)], *named])),
        "writable": paths[len(roots) :],
        "network": list(network),
    }
    return {key: value for key, value in table.items() if value} or bool(words)


def isolation_note(server: McpServer) -> str:
    """Return what the operator should know of a server that is started here."""
    terms = terms_of(server.sandbox)
    if terms is None:
        return f"isolation: none; {server.name} runs as you, with all your rights on this machine"
    reads = [f"reads {', '.join(terms.roots)}"] if terms.roots else []
    changes = [f"changes {', '.join(terms.writable)}"] if terms.writable else []
    reaches = [f"reaches {', '.join(terms.network)}" if terms.network else "has no network"]
    note = f"isolation: sandbox; {server.name} {', '.join((*reads, *changes, *reaches))}"
    program = Path(server.command[0]).name
    if program in _FETCHERS and not terms.network:
        note += f"\n{program} downloads what it runs: name its registry with --network, or install the server"
    return note


def _named(word: str, folder: Path) -> list[str]:
    """The path that an argument names, if there is one; the whole folder of a program that is named by its file.

    A link is named as well as what it leads to: the program finds the one by its words, and the other from there.
    """
    place = folder / word
    if "://" in word or word.startswith("-") or not ("/" in word or place.is_file()) or not place.exists():
        return []
    named, real = Path(os.path.normpath(place)), place.resolve()
    if real == Path("/"):
        return []
    if real.is_file() and _PACKAGES in named.parts:  # what a package needs lies beside it, or above
        return [str(Path(*named.parts[: named.parts.index(_PACKAGES) + 1]))]
    root = real
    if real.is_file():
        root = next((above for above in real.parents if any((above / mark).exists() for mark in _MARKS)), real)
    return [str(root)] if named.is_relative_to(root) else [str(named), str(root)]
