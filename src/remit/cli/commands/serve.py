"""`remit serve`: the HTTP API, pages, MCP and a worker in one process."""

from __future__ import annotations

import click

from remit.cli.context import CommandState
from remit.cli.listen_options import ListenOptions, listening_options
from remit.cli.options import pass_state


@click.command("serve")
@listening_options(8_320)
@click.option("--no-work", is_flag=True, help="Take no jobs and tickets; run only the steps that a request waits for.")
@pass_state
def command(state: CommandState, listening: ListenOptions, no_work: bool) -> int:
    """Serve the HTTP API, the console and MCP, and run jobs and TOOL tickets.

    Answers at /v1, /mcp, /metrics, /health and /openapi.json, and serves the console at /; by default only to this
    machine. [[clients]] lists who may connect. To listen beyond this machine, every client needs a token and the server
    a certificate (--tls-cert). On SIGTERM or Ctrl-C, the server goes on answering for serve.drain_seconds; then
    running calls get jobs.drain_seconds to end. A second signal stops at once.
    """
    from remit.cli.server import serve

    return serve(state, listening, work=not no_work)
