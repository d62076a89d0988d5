"""`remit worker`: work on whatever is due."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.output import counted, reserved_stdout
from remit.tasks import first

if TYPE_CHECKING:
    from remit.cli.runner import SignalStop

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
