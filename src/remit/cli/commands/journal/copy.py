"""`remit journal copy`: from one place to another, whatever keeps it there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.journal.copy import Copied, Progress


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option("how much was copied")
@pass_state
def command(state: State, source: str, target: str) -> int:
    """Copy a journal to another place, and prove that the copy is equal.

    FROM and TO are paths or URLs, as for --journal. Every event keeps its hash, and each stream of TO is checked
    against FROM at the end. Stop the workers first. If a copy is interrupted, start it again: it continues where it
    stopped.
    """
    from remit.cli.running import run_to_end

    begin, end = (state.settings({"journal.url": url}).journal for url in (source, target))
    if begin.url == end.url:
        raise UsageError("FROM and TO are the same journal", remedy="Name another place for the copy.")
    if begin.file is not None and not begin.file.exists():
        raise UsageError(f"there is no journal at {begin.file}", remedy="Correct FROM.")
    copied, where = run_to_end(_copy(state, begin.url, end.url))
    if state.as_json:
        import msgspec

        state.output.json(msgspec.to_builtins(copied))
    else:
        from remit.cli.text import counted

        out = state.output.out
        held = f"{counted(copied.events, 'event')} in {counted(copied.streams, 'stream')}"
        counts = f"{held}, {counted(copied.blobs, 'value')} beside them"
        out.line(f"{out.style('ok', 'ok')} {counts}: {where} holds the same")
        state.note(f"use it: remit --journal {where} jobs" if "://" not in where else f"set journal.url to use {where}")
    return exit_codes.OK


async def _copy(state: State, begin: str, end: str) -> tuple[Copied, str]:
    from remit.clock import SystemClock
    from remit.journal.copy import copy, refuse_busy
    from remit.journal.event import HeadQuery
    from remit.journal.journal import Journal
    from remit.wiring.journal import open_store

    async with contextlib.AsyncExitStack() as stack:

        def opened(url: str) -> Journal:
            journal = Journal(open_store(url, SystemClock()))
            stack.push_async_callback(journal.close)
            return journal

        source = opened(begin)
        if not await source.heads(HeadQuery(limit=1)):
            raise UsageError(f"{source.url} is empty", remedy="Correct FROM.")
        await refuse_busy(source)
        target = opened(end)  # not before: if FROM cannot be copied, nothing is made
        with _progress(state) as progress:
            return await copy(source, target, progress), target.url


@contextlib.contextmanager
def _progress(state: State) -> Iterator[Progress]:
    """A bar for each of the two passes, on a terminal."""
    if state.as_json or state.quiet or not state.output.err.is_terminal:
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks = {what: bars.add_task(what, total=None) for what in ("copy", "prove")}
        yield lambda what, done, all_: bars.update(tasks[what], completed=done, total=all_)
