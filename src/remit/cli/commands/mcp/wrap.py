"""Tools to MCP clients: `remit mcp wrap` and `remit mcp serve`."""

from __future__ import annotations

import re
from typing import Final

import click

from remit.cli.context import CommandState
from remit.cli.listen_options import PORT, ListenOptions, listening_options
from remit.cli.options import LEVELS, pairs, pass_state
from remit.cli.wrap_server import alone, answering, name_at, name_of, started
from remit.errors import UsageError
from remit.regex import regex

_VARIABLE: Final = regex(r"[A-Za-z_]\w*", re.ASCII)


@click.command("wrap", context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="NAME", help="A name for the server. Default: derived from the command or URL.")
@click.option("--url", default="", metavar="URL", help="The URL of a remote server, instead of COMMAND.")
@click.option(
    "--header", "headers", metavar="K=V", multiple=True, help="With --url: a header to send; ${VAR} for a secret."
)
@click.option(
    "--header-env",
    "variables",
    metavar="K=NAME",
    multiple=True,
    help="With --url: a header whose value is that of an environment variable.",
)
@click.option(
    "--issuer", "issuers", metavar="URL", multiple=True, help="With --url: where its login may lead, if elsewhere."
)
@click.option(
    "--env",
    "names",
    metavar="NAME",
    multiple=True,
    help="A variable that the command sees beside PATH and the like; repeatable. Default: all but REMIT_*.",
)
@click.option("--level", "levels", metavar="TOOL=L0", multiple=True, help="The level of a tool or pattern; repeatable.")
@click.option(
    "--era", type=click.Choice(["legacy", "modern"]), help="The protocol that the server speaks. Default: detected."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.001, max=86_400),
    metavar="S",
    help="Seconds a call may take without progress. Default: 30.",
)
@click.option("--sampling", is_flag=True, help="Let the server ask for the client's model.")
@click.option("--strict", is_flag=True, help="Refuse arguments that the schema of a tool does not declare.")
@click.option("--http", "over_http", is_flag=True, help="Serve many clients over streamable HTTP instead of stdio.")
@listening_options(PORT, "With --http: ")
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@pass_state
def command(
    state: CommandState,
    name: str | None,
    url: str,
    headers: tuple[str, ...],
    variables: tuple[str, ...],
    issuers: tuple[str, ...],
    names: tuple[str, ...],
    levels: tuple[str, ...],
    era: str | None,
    timeout: float | None,
    sampling: bool,
    strict: bool,
    over_http: bool,
    listening: ListenOptions,
    words: tuple[str, ...],
) -> int:
    """Start an MCP server, and govern the calls to it.

    In your client's configuration, put `remit mcp wrap --` before the server's command. The client sees the same tools
    under the same names; every call passes your policy and is recorded. A call runs at once if you marked its tool as
    read-only (--level get_issue=L0); every other call asks a person first. Prompts, resources and the server's
    questions are passed on.

    For a remote server give --url. What a header needs to keep secret stands in the environment: --header
    'Authorization=Bearer ${TOKEN}'. Without that header, log in once: remit mcp login --url URL.

    Reads a remit.toml only if `remit --config FILE mcp wrap` or REMIT_CONFIG names it.
    """
    from remit.cli.offer import ServedOffer, serve
    from remit.mcp_server.offer import OwnNames

    state.search = False  # a client starts this in the folder that its agent works on, which must not loosen the guard
    of_url = {"--header": headers, "--header-env": variables, "--issuer": issuers}
    if words and not url and any(of_url.values()):
        option = next(option for option, values in of_url.items() if values)
        remedy = f"Leave {option} out: a command takes what it needs from its environment."
        raise UsageError(f"{option} belongs to --url, and a command is given", remedy=remedy)
    if url and names:
        raise UsageError(
            "--env belongs to a command, and --url is given", remedy="Leave --env out: nothing is started."
        )
    if bool(words) == bool(url):
        raise UsageError("either a command or --url is needed", remedy="remit mcp wrap -- COMMAND, or --url URL")
    called = name or (name_at(url) if url else name_of(words))
    more = {
        "tools": dict(map(_level, levels)),
        "era": era,
        "strict": strict,
        "timeout_ms": round((timeout or 0) * 1_000),
    }
    if url:
        table = alone(called, answering(called, url, _headers(headers, variables), issuers), **more)
    else:
        table = alone(called, started(words, _variables(names)), **more)
    flags = {**table, "mcp.elicitation": "forward", "tools.only": ["mcp"]}
    if sampling:
        flags["mcp.sampling"] = "forward"
    offer = ServedOffer(OwnNames(called), flags, work=False, relayed=called)
    return serve(state, offer, listening if over_http else None)


def _headers(headers: tuple[str, ...], variables: tuple[str, ...]) -> dict[str, str]:
    """The headers to send; references stand for what is in the environment. Raises UsageError."""
    for header, variable in pairs(variables, "--header-env").items():
        if not _VARIABLE.fullmatch(variable):
            raise UsageError(
                f"--header-env {header} names no environment variable", remedy="Write --header-env K=NAME."
            )
        headers = (*headers, f"{header}=${{{variable}}}")
    return pairs(headers, "--header")


def _variables(names: tuple[str, ...]) -> tuple[str, ...]:
    """The variables that a server is to see. Raises UsageError."""
    for variable in names:
        if not _VARIABLE.fullmatch(variable) or variable.startswith("REMIT_"):
            reason = "is Remit's own" if variable.startswith("REMIT_") else "names no environment variable"
            raise UsageError(
                f"--env {variable.partition('=')[0]} {reason}", remedy="Write --env NAME, without a value."
            )
    return names


def _level(text: str) -> tuple[str, str]:
    tool, _, level = text.rpartition("=")
    if not tool or level not in LEVELS:
        raise click.BadParameter(f"{text!r} does not look like get_*=L0", param_hint="--level")
    return tool, level


@click.command("serve")
@click.option("--http", "over_http", is_flag=True, help="Serve many clients over streamable HTTP instead of stdio.")
@listening_options(PORT, "With --http: ")
@click.option("--no-work", is_flag=True, help="Leave the jobs that clients start to `remit worker`.")
@pass_state
def serve_catalog(
    state: CommandState,
    over_http: bool,
    listening: ListenOptions,
    no_work: bool,
) -> int:
    """Serve the tools of this project to MCP clients.

    Every call passes the same policy, approvals and journal as any other; each client's session is recorded as a
    stream. By default it serves one client on stdin and stdout. With --http it listens on 127.0.0.1:8321 and answers at
    /mcp; [[clients]] names who may connect; without [[clients]] only programs on this machine may.
    """
    from remit.cli.offer import ServedOffer, serve
    from remit.mcp_server.offer import WireNames

    offer = ServedOffer(WireNames(), {}, work=not no_work)
    return serve(state, offer, listening if over_http else None)
