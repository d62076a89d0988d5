"""`remit serve`: the HTTP API, pages, MCP and a worker in one process."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.options import pass_state

PORT = 8_320


@click.command("serve")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="Listen here. Default: 127.0.0.1.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65_535), default=PORT, help="Default: 8320; 0: any.")
@click.option("--known-as", metavar="NAME", multiple=True, help="Another host name that clients use.")
@click.option("--access-log", metavar="FILE", help="Append a JSON line for each request; - is stderr.")
@click.option("--no-work", is_flag=True, help="Leave jobs and TOOL tickets to other processes.")
@pass_state
def command(
    state: State, host: str, port: int, known_as: tuple[str, ...], access_log: str | None, no_work: bool
) -> int:
    """Serve the HTTP API, pages and MCP, and work on jobs and TOOL tickets.

    It answers at /v1, /mcp, /metrics, /health and /openapi.json, and with pages for a browser at /, on this machine
    alone unless told otherwise. Who may connect stands in [[clients]]; beyond this machine every client needs a
    token. SIGTERM or Ctrl-C lets calls under way end, for jobs.drain_seconds; a second one ends at once.
    """
    from remit.cli.server import serve
    from remit.cli.serving import Listening

    return serve(state, Listening(host, port, known_as, access_log or ""), work=not no_work)
