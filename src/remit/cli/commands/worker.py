"""Processes that work: `remit worker`, `remit serve` and `remit workers`, which lists them."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.listen_options import ListenOptions, listening_options
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted, reserved_stdout
from remit.tasks import first

if TYPE_CHECKING:
    from remit.cli.runner import SignalStop
    from remit.service.workers import WorkerView

_log: Final = logging.getLogger("remit.worker")


@click.command("worker")
@click.option("--concurrency", metavar="N", type=click.IntRange(1), help="Jobs at once. Default: jobs.concurrency.")
@pass_state
def command(state: CommandState, concurrency: int | None) -> int:
    """Run due jobs until stopped.

    Several workers may share a journal: a file on one machine, PostgreSQL on many. On SIGTERM or Ctrl-C, running jobs
    get jobs.drain_seconds to end and are then left to other workers; a second signal leaves them at once. Logs go to
    stderr.
    """
    from remit.cli.runner import run_async

    state.logs = 0 if state.quiet else 1
    with reserved_stdout():
        return run_async(lambda stop: _work(state, concurrency, stop), gentle=True)


async def _work(state: CommandState, concurrency: int | None, stop: SignalStop) -> int:
    from remit.cli.services import beside, keep_part, keep_required, keep_restarts
    from remit.cli.settings_watch import keep_settings

    flags = {"jobs.concurrency": concurrency}
    async with AsyncExitStack() as stack:
        remit = await stop.unless(stack.enter_async_context(state.remit(creates=True, flags=flags)))
        if remit is None:
            return exit_codes.OK
        engine = remit.engine
        stop.hurry = engine.stop
        # Before anything is said or begun: a journal that cannot be reached is told of once.
        await first(remit.service.health.reachable(), stop.requested.wait())
        if stop.requested.is_set():
            return exit_codes.OK
        works = remit.beside(stop.requested, "worker")
        await stack.enter_async_context(remit.sending())
        engine.start(role="worker")
        settings = remit.settings
        _log.info("runs jobs of %s, %d at once", remit.url, settings.jobs.concurrency)
        _log.info("runs plans and the recipes %s", ", ".join(remit.service.recipes.names()))
        keeping = keep_settings(state, remit, flags, hangup=True)
        parts = (keep_part(remit, work) for work in works)
        async with beside(keep_required(remit), keep_restarts(remit), keeping, *parts):
            await first(engine.stopped(), stop.requested.wait())
        drain = settings.jobs.drain_seconds
        if engine.running:
            _log.info("stopping: %s under way, %d s left to end", counted(len(engine.running), "job"), drain)
        try:
            if not await engine.drain(drain):
                _log.info("gives up %s", ", ".join(engine.running))
        finally:
            await engine.stop()
        _log.info("stopped")
    return exit_codes.OK


_SHOWN: Final = 4
"""Recipes that a line names."""


@click.command("workers")
@json_option("the processes, with the version of each recipe")
@pass_state
def workers(state: CommandState) -> int:
    """List the processes that run jobs, and the code they run.

    These are `remit worker`, `remit serve`, `remit mcp serve`, `remit tickets work` and Python programs that open a
    Remit. A process that died is left out at once on its own machine, and after jobs.lease_seconds on others. A note
    names processes that run with an older remit.toml than there is now.
    """
    rows = state.ask(lambda remit: remit.service.workers.views(), code="unused")
    for row in rows:
        if row.outdated:
            state.note(
                f"{row.words} runs with an older remit.toml: its log says why; start it again if the file is right"
            )
    return state.listing(rows, _print_workers, "no process runs jobs: start `remit worker`")


def _print_workers(state: CommandState, rows: list[WorkerView]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = ("WORKER", "ROLE", "SINCE", "JOBS", TableColumn("RECIPES", whole=False))
    lines = [(row.words, row.role, moment(row.since), str(row.jobs), _recipes(row.recipes)) for row in rows]
    table(state.output.out, columns, lines)


def _recipes(recipes: dict[str, str]) -> str:
    named = [f"{name} {version}" for name, version in recipes.items()]
    return ", ".join(named[:_SHOWN]) + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")


@click.command("serve")
@listening_options(8_320)
@click.option("--no-work", is_flag=True, help="Take no jobs and tickets; run only the steps that a request waits for.")
@pass_state
def serve(state: CommandState, listening: ListenOptions, no_work: bool) -> int:
    """Serve the HTTP API, the console and MCP, and run jobs and TOOL tickets.

    Answers at /v1, /mcp, /metrics, /health and /openapi.json, and serves the console at /; by default only to this
    machine. [[clients]] lists who may connect. To listen beyond this machine, every client needs a token and the server
    a certificate (--tls-cert). On SIGTERM or Ctrl-C, the server goes on answering for serve.drain_seconds; then
    running calls get jobs.drain_seconds to end. A second signal stops at once.
    """
    from remit.cli.server import serve

    return serve(state, listening, work=not no_work)
