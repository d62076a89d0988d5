"""`remit serve`: the HTTP API, pages, MCP and a worker in one process."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.listening import Listening, listening_options
from remit.cli.options import pass_state


@click.command("serve")
@listening_options(8_320)
@click.option("--no-work", is_flag=True, help="Do not work on jobs and TOOL tickets.")
@pass_state
def command(state: State, listening: Listening, no_work: bool) -> int:
    """Serve the HTTP API, pages and MCP, and work on jobs and TOOL tickets.

    It answers at /v1, /mcp, /metrics, /health and /openapi.json, and with pages for a browser at /, on this machine
    alone unless told otherwise. [[clients]] lists who may connect; beyond this machine every client needs a
    token, and the server a certificate (--tls-cert). SIGTERM or Ctrl-C lets calls under way end, for
    jobs.drain_seconds; a second one ends at once.
    """
    from remit.cli.server import serve

    return serve(state, listening, work=not no_work)
